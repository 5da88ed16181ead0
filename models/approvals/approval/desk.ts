// Which calls need an approval, who asks for one, and who spends it.
import { createHmac } from 'node:crypto';
import { canonicalJson } from '../../../core/canonical_json';
import type { Context, Identity, ProjectAccess } from '../../../core/context';
import type { ApprovalDesk, Consequences, DestroyingCall } from '../../../core/destroying_call';
import { problem, type Problem } from '../../../core/errors';
import { mintId, timeOfId } from '../../../core/ids';
import { limits } from '../../../core/limits';
import { approvalMail } from '../../../core/mail/platform_mail';
import { named } from '../../../db/statement';
import type { ApprovalRequirement } from '../../../schema/types';
import { sealedColumns } from '../../base/sealed_columns';
import { actorOf, recordProjectEvent, type Activity } from '../../projects/activity';
import { Approval } from '../approval';
import { countDestroyingCall } from '../key_brake';
import { mailOwners } from '../owners';
import { watchChanges } from './changes';

export const approvalDesk: ApprovalDesk = {
  async judge(ctx, call) {
    if (!ctx.identity) return { needs: 'nothing' };
    if (ctx.identity.kind !== 'session') await countDestroyingCall(ctx, ctx.identity);
    if (!ctx.project || !(await needsApproval(ctx, ctx.project, call))) return { needs: 'nothing' };
    const [open] = await ctx.sql.query<OpenRow>(OPEN, [fingerprintOf(ctx, call)]);
    if (!open) return { needs: 'approval' };
    if (open.status === 'approved') return { needs: 'spending', approved: open.id };
    throw approvalRequired(ctx, open);
  },
  watch: watchChanges,
  async request(ctx, call, consequences) {
    throw approvalRequired(ctx, await ctx.transact((inner) => requestApproval(inner, call, consequences)));
  },
  async spend(ctx, approved) {
    if ((await ctx.sql.query(SPEND, [approved])).length) return;
    const detail = 'The approval was used by another call or has ended. Repeat the call to ask again.';
    throw problem('approval_required', detail, membersOf(ctx, approved));
  },
};

interface OpenRow {
  id: string;
  status: 'pending' | 'approved' | 'refused';
  decided_by: Activity['actor'] | null;
}

/** An approval ends with the role of the person who gave it. */
const IS_HELD = `(a.status <> 'approved' or exists (select from members m
  where m.project_id = a.project_id and m.user_id = a.decider_id and m.role = 'owner'))`;
const MODE = named('select approval_required_for as mode from projects where id = $1');
const OPEN = named(`select a.id, a.status, a.decided_by from approvals a
  where a.fingerprint = $1 and a.is_open and a.expires_at > now() and ${IS_HELD}`);
const CLOSE = named(`update approvals a set is_open = false, version = version + 1, updated_at = now(),
    status = case when a.status = 'refused' then a.status else 'expired' end
  where a.fingerprint = $1 and a.is_open and (a.expires_at <= now() or not ${IS_HELD})`);
const INSERT = named(`insert into approvals (id, created_at, updated_at, project_id, fingerprint, operation, summary,
    sealed_input, if_match, resource, affects, requested_by, requester_id, key_id, expires_at)
  values ($1, $2, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, now() + make_interval(hours => $14))
  on conflict (fingerprint) where is_open do nothing returning id`);
const SPEND = named(`update approvals a set status = 'used', used_at = now(), is_open = false, version = version + 1,
    updated_at = now()
  where a.id = $1 and a.status = 'approved' and a.expires_at > now() and ${IS_HELD} returning a.id`);
const COUNT = named(`select count(*)::int as used from approvals
  where project_id = $1 and status = 'pending' and expires_at > now()`);
const RANKS: readonly ApprovalRequirement[] = ['none', 'keys', 'all'];

/** Whether calls of this caller that destroy need an approval in the selected project. */
export async function requiresApproval(ctx: Context): Promise<boolean> {
  const call = { operation: '', summary: '', input: {} };
  return ctx.project !== null && needsApproval(ctx, ctx.project, call);
}

async function needsApproval(ctx: Context, project: ProjectAccess, call: DestroyingCall): Promise<boolean> {
  const [row] = await ctx.sql.query<{ mode: ApprovalRequirement }>(MODE, [project.id]);
  const mode = row?.mode ?? 'none';
  if (mode === 'none') return false;
  return mode === 'all' || ctx.identity?.kind !== 'session' || lowers(call, mode);
}

/** Who could lower it alone would need no approval for anything. */
function lowers({ operation, input }: DestroyingCall, mode: ApprovalRequirement): boolean {
  if (operation !== 'updateProject') return false;
  const { approval_required_for: wanted } = input.input as { approval_required_for?: ApprovalRequirement };
  return wanted !== undefined && RANKS.indexOf(wanted) < RANKS.indexOf(mode);
}

/** Names a call by who makes it and all that it says. Keyed, since what it says may be a secret that can be guessed. */
function fingerprintOf(
  { identity, project, secrets, if_match }: Context,
  { operation, input }: DestroyingCall,
): string {
  const { kind, id, user } = identity as Identity;
  // A person may log in once more before they repeat a call.
  const caller = kind === 'session' ? (user?.id ?? id) : id;
  const text = canonicalJson([caller, project?.id, operation, input, if_match ?? null]);
  return createHmac('sha256', secrets.subKey('approvals')).update(text).digest('hex');
}

async function requestApproval(ctx: Context, call: DestroyingCall, consequences: Consequences): Promise<OpenRow> {
  const { identity, project } = ctx as { identity: Identity; project: ProjectAccess };
  const fingerprint = fingerprintOf(ctx, call);
  await ctx.sql.query(CLOSE, [fingerprint]);
  await requireRoom(ctx, project.id);
  const id = mintId(Approval.idPrefix);
  const { operation, summary, input } = call;
  const { resource, affects } = consequences;
  const actor = actorOf(identity);
  const key_id = identity.kind === 'session' ? null : identity.id;
  const sealed = ctx.secrets.seal(JSON.stringify(input), sealedColumns.approvalInput.contextOf(id));
  const [made] = await ctx.sql.query<{ id: string }>(INSERT, [
    ...[id, timeOfId(id).toISOString(), project.id, fingerprint, operation, summary, sealed, ctx.if_match ?? null],
    ...[resource && JSON.stringify(resource), JSON.stringify(affects), JSON.stringify(actor)],
    ...[identity.user?.id ?? null, key_id, limits.approvalWaitHours],
  ]);
  // The same call has asked at the same time.
  if (!made)
    return (await ctx.sql.query<OpenRow>(OPEN, [fingerprint]))[0] ?? { id, status: 'pending', decided_by: null };
  const name = resource ? `${operation} ${resource.name ?? resource.id}` : operation;
  await recordProjectEvent(ctx.sql, {
    ...{ project_id: project.id, action: 'approval.requested', actor, key_id },
    resource: { type: Approval.kind, id, name },
  });
  const mail = approvalMail({
    ...{ who: actor.name, key: key_id && identity.name, project: project.name, summary },
    ...{ name: resource && (resource.name ?? resource.id), hours: limits.approvalWaitHours, link: urlOf(ctx, id) },
  });
  await mailOwners(ctx, { project_id: project.id, except: identity.user?.id ?? null }, mail);
  return { id, status: 'pending', decided_by: null };
}

/** A program that asks for everything must not bury what people would look at. */
async function requireRoom(ctx: Context, projectId: string): Promise<void> {
  const { pendingApprovalsPerProject: max } = limits;
  const [row] = await ctx.sql.query<{ used: number }>(COUNT, [projectId]);
  if ((row?.used ?? 0) < max) return;
  const detail = `${max} calls of this project wait for an approval. Decide about them first.`;
  throw problem('rate_limited', detail, {}, { 'Retry-After': '60' });
}

function approvalRequired(ctx: Context, { id, status, decided_by }: OpenRow): Problem {
  const detail =
    status === 'refused'
      ? `${decided_by?.name ?? 'An owner'} has refused this call.`
      : 'An owner of the project must approve this call first.';
  return problem('approval_required', detail, membersOf(ctx, id));
}

function membersOf(ctx: Context, id: string): { approval_id: string; approval_url: string } {
  return { approval_id: id, approval_url: urlOf(ctx, id) };
}

function urlOf({ config, project }: Context, id: string): string {
  return `${config.baseUrl}/projects/${project?.id}/approvals/${id}`;
}
