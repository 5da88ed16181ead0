// Approvals: calls that destroy and wait for a second person. Who asks for one, and who spends it: approval/desk.ts.
import type { Context, Identity } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import { limits } from '../../core/limits';
import { defineStates } from '../../core/states';
import { named } from '../../db/statement';
import type { ApprovalStatus, Approval as Shown } from '../../schema/types';
import { Resource } from '../base/resource';
import { requireCode } from '../identity/two_factor';
import { currentUser, sessionUser } from '../identity/user';
import { actorOf, type Activity } from '../projects/activity';
import { hasLostMembers, mayApproveOthers } from '../projects/member/seniority';

/** What nobody has decided, or the caller has not used, within its time has ended. */
const STATUS = `case when status in ('pending', 'approved') and expires_at <= now() then 'expired' else status end`;

export class Approval extends Resource {
  static readonly table = 'approvals';
  static readonly kind = 'approval';
  static readonly idPrefix = 'apr';
  static override readonly filters = { status: `${STATUS} = ?` };
  static override readonly states = defineStates({
    initial: ['pending'],
    moves: { pending: ['approved', 'refused', 'expired'], approved: ['used', 'refused', 'expired'] },
  });

  declare status: ApprovalStatus;
  declare operation: string;
  declare summary: string;
  declare sealed_input: string;
  declare if_match: string | null;
  declare resource: Shown['resource'];
  declare affects: Shown['affects'];
  declare requested_by: Activity['actor'];
  /** The person who asks, with a key or in the dashboard; null for the key of a project. */
  declare requester_id: string | null;
  declare key_id: string | null;
  declare decided_by: Activity['actor'] | null;
  declare expires_at: string;
  declare decided_at: string | null;
  declare used_at: string | null;

  /** The status of this moment. */
  get current(): ApprovalStatus {
    const isWaiting = this.status === 'pending' || this.status === 'approved';
    return isWaiting && Date.parse(this.expires_at) <= Date.now() ? 'expired' : this.status;
  }

  /** @throws invalid_state, role_not_permitted for who has asked, unless nobody else can approve it */
  async approve(ctx: Context): Promise<this> {
    await this.requireApprovable(ctx);
    return this.decide(ctx, 'approved');
  }

  /** @throws as `approve` */
  async requireApprovable(ctx: Context): Promise<void> {
    this.requireCurrent(Approval.states.predecessors('approved'));
    await this.requireSecondPerson(ctx);
    await this.requireLivingKey(ctx);
  }

  /** @throws invalid_state */
  async refuse(ctx: Context): Promise<this> {
    this.requireCurrent(Approval.states.predecessors('refused'));
    return this.decide(ctx, 'refused');
  }

  private decide(ctx: Context, status: 'approved' | 'refused'): Promise<this> {
    const now = Date.now();
    return this.update(ctx, {
      status,
      decided_by: actorOf(ctx.identity as Identity),
      decider_id: sessionUser(ctx).id,
      decided_at: new Date(now).toISOString(),
      expires_at: new Date(now + limits.approvalUseMinutes * 60_000).toISOString(),
    });
  }

  private requireCurrent(allowed: readonly ApprovalStatus[]): void {
    if (allowed.includes(this.current)) return;
    const members = { resource_status: this.current, allowed_statuses: [...allowed] };
    throw problem('invalid_state', `The approval is ${this.current}.`, members);
  }

  private async requireSecondPerson(ctx: Context): Promise<void> {
    const { id } = sessionUser(ctx);
    if (this.requester_id !== id) {
      if (await mayApproveOthers(ctx.sql, this.project_id, id)) return;
      throw problem('role_not_permitted', NEW_OWNER, { required_role: 'owner' });
    }
    const [owners] = await ctx.sql.query<{ count: number }>(OWNERS, [this.project_id]);
    if ((owners?.count ?? 0) < 2 && !(await hasLostMembers(ctx.sql, this.project_id))) return;
    const detail = 'You have asked for this call yourself, so another owner of the project must approve it.';
    throw problem('role_not_permitted', detail, { required_role: 'owner' });
  }

  private async requireLivingKey(ctx: Context): Promise<void> {
    if (this.key_id === null || (await ctx.sql.query(LIVING, [this.key_id])).length) return;
    const members = { resource_status: 'revoked', allowed_statuses: ['pending'] };
    throw problem('invalid_state', 'The API key that asks has been revoked or has expired.', members);
  }
}

const NEW_OWNER = 'You became an owner of the project today. An owner who was it before must approve this call.';
const OWNERS = named(`select count(*)::int as count from members where project_id = $1 and role = 'owner'`);
const LIVING = named(
  'select 1 from api_keys where id = $1 and revoked_at is null and (expires_at is null or expires_at > now())',
);

/**
 * Before the transaction: that the call can be approved by the person, before a code of theirs is spent.
 * @throws not_found, and what `approve` throws, and requireApprover
 */
export async function prepareApproval(ctx: Context, id: string, code: string | null | undefined): Promise<void> {
  await (await Approval.get(ctx, id)).requireApprovable(ctx);
  await requireApprover(ctx, code);
}

/**
 * That the person is there, outside of the transaction: a current code where two-factor is on, else a session.
 * @throws validation_failed on `code`, dashboard_only, rate_limited
 */
async function requireApprover(ctx: Context, code: string | null | undefined): Promise<void> {
  const { totp_confirmed_at } = await currentUser(ctx);
  if (!totp_confirmed_at && ctx.identity?.kind === 'session') return;
  if (!totp_confirmed_at)
    throw problem('dashboard_only', 'Without two-factor, calls are approved in the dashboard alone.');
  const detail = 'is required, since two-factor is on';
  if (!code) throw validationFailed([{ field: 'code', code: 'required', detail }]);
  await requireCode(ctx, code);
}
