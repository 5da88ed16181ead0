// The checks between "who is calling" and "what do they send", in the order of decision 6:
// dashboard function, account, rate limit, scope, project. Both faces call this one function.
import type { Context, Identity, ProjectAccess } from './context';
import { problem } from './errors';
import type { RootField } from './operations';

/**
 * Lets the caller in or throws the problem that refuses it; sets the rate-limit headers of the reply and the context's project.
 * @param projectId value of the field's project argument (path on REST), if it has one and it was sent
 * @returns the selected project, null where the operation acts on none
 */
export async function admit(ctx: Context, field: RootField, projectId: string | undefined): Promise<ProjectAccess | null> {
  if (field.session) return admitSession(ctx, field);
  if (field.scope === 'none') return null;
  const identity = ctx.identity ?? refuse('token_missing');
  if (identity.account_status === 'suspended') throw problem('account_suspended');
  await takePoint(ctx, field, identity);
  requireScope(identity, field.scope);
  // Before the last check: a call that is refused there is told in the project's activity.
  ctx.project = field.global ? null : await selectProject(ctx, identity, projectId);
  requireAccess(field, identity, ctx.project);
  return ctx.project;
}

/** Throws insufficient_scope unless the identity holds the scope. Used for relations too. */
export function requireScope(identity: Identity, scope: RootField['scope']): void {
  if (scope === 'any' || scope === 'none' || identity.scopes === null) return;
  if (identity.scopes.includes(scope)) return;
  throw problem('insufficient_scope', `This operation needs the scope ${scope}.`, { required_scope: scope, token_scopes: identity.scopes });
}

async function admitSession(ctx: Context, field: RootField): Promise<null> {
  if (ctx.identity && ctx.identity.kind !== 'session') throw problem('dashboard_only');
  if (field.session === 'signedOut') return null;
  const identity = ctx.identity ?? refuse('session_required');
  if (identity.account_status === 'suspended') throw problem('account_suspended');
  await takePoint(ctx, field, identity);
  return null;
}

async function takePoint(ctx: Context, field: RootField, identity: Identity): Promise<void> {
  const answer = await ctx.limiter.take(identity.account_id, field.budget, 1);
  const headers = ctx.reply.headers;
  headers['RateLimit-Limit'] = String(answer.limit);
  headers['RateLimit-Remaining'] = String(answer.remaining);
  headers['RateLimit-Reset'] = String(answer.reset_seconds);
  headers['RateLimit-Policy'] = `"${field.budget}";q=${answer.limit};w=60`;
  if (answer.allowed) return;
  throw problem('rate_limited', `The budget of ${answer.limit} ${field.budget} calls a minute is used up.`, {}, { 'Retry-After': String(answer.reset_seconds) });
}

async function selectProject(ctx: Context, identity: Identity, fromArgument: string | undefined): Promise<ProjectAccess> {
  const id = fromArgument ?? ctx.project_header ?? identity.project_id ?? refuse('project_header_missing');
  const allowed = identity.project_id ? [identity.project_id] : identity.project_ids;
  if (allowed && !allowed.includes(id)) throw problem('project_not_allowed');
  return (await ctx.access(id)) ?? refuse('project_not_found');
}

function requireAccess(field: RootField, identity: Identity, project: ProjectAccess | null): void {
  if (field.access.personalKey && identity.kind === 'project') throw problem('personal_key_required');
  if (field.access.unrestricted && identity.project_ids) throw problem('project_not_allowed', 'The key is restricted to certain projects.');
  if (!project || field.kind === 'query') return;
  if (project.role === 'viewer') throw problem('role_not_permitted', undefined, { required_role: 'developer' });
  // A project key may change its own project: a stated exception to the owner rule (decision 10).
  if (field.access.role === 'owner' && project.role !== 'owner' && identity.kind !== 'project') {
    throw problem('role_not_permitted', undefined, { required_role: 'owner' });
  }
}

function refuse(code: 'token_missing' | 'session_required' | 'project_header_missing' | 'project_not_found'): never {
  throw problem(code);
}
