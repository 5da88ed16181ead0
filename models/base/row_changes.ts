// What a mutation changes of rows, noted for its revert, and the ids that rows get again by one.
import type { Context } from '../../core/context';
import { isId, mintId } from '../../core/ids';
import type { RowChange } from '../../core/undo';

type Noting = Pick<Context, 'activity'>;

/** Notes a change, where the mutation can be reverted. A row that changes twice keeps the values before the first. */
export function noteRowChange(
  { activity: { changes } }: Noting,
  kind: string,
  { id }: { id: string },
  states: Pick<RowChange, 'before' | 'after'>,
): void {
  const known = changes?.find((one) => one.kind === kind && one.id === id);
  if (known) known.after = states.after;
  else changes?.push({ kind, id, ...states });
}

type State = NonNullable<RowChange['before']>;

/**
 * A row as a revert needs it; null where the mutation is not noted. A secret that no key opens can be overwritten as
 * before: then nothing is kept.
 */
export function stateForRevert(
  ctx: Pick<Context, 'activity' | 'secrets'>,
  row: { revertState(ctx: Pick<Context, 'secrets'>): State },
): State | null {
  if (!ctx.activity.changes) return null;
  try {
    return row.revertState(ctx);
  } catch {
    ctx.activity.undo = 'not_kept';
    delete ctx.activity.changes;
    return null;
  }
}

/** The id of a new row: of the row that a revert makes again, or one of its own. */
export function newRowId({ activity: { revive } }: Noting, prefix: string): string {
  const index = revive?.findIndex((id) => isId(prefix, id)) ?? -1;
  return (index >= 0 && revive?.splice(index, 1)[0]) || mintId(prefix);
}
