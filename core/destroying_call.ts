// Calls that destroy, as approvals and the brake of keys know them.
import type { Context } from './context';

/** A call that destroys, as an approval is bound to it. */
export interface DestroyingCall {
  operation: string;
  /** One line that says what the operation does. */
  summary: string;
  input: Record<string, unknown>;
}

/** What a rehearsal of a call changed. */
export interface Consequences {
  resource: { type: string; id: string; name: string | null } | null;
  affects: { type: string; count: number }[];
}

/** What becomes of a call: `approved` is the approval that it spends. */
export type Verdict = { needs: 'nothing' } | { needs: 'approval' } | { needs: 'spending'; approved: string };

/** Where approvals are kept and destroying calls are counted. */
export interface ApprovalDesk {
  /** @throws key_paused, and approval_required while nobody has decided, or somebody has refused */
  judge(ctx: Context, call: DestroyingCall): Promise<Verdict>;
  /** Begins to note what a transaction changes. @returns a function that answers what has changed since */
  watch(ctx: Context): Promise<() => Promise<Consequences['affects']>>;
  /** Stores that the call waits for a person. @throws approval_required, rate_limited where too many wait */
  request(ctx: Context, call: DestroyingCall, consequences: Consequences): Promise<never>;
  /** In the transaction of the call. @throws approval_required where another call was faster, or it has ended */
  spend(ctx: Context, approved: string): Promise<void>;
}
