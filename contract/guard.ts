// The checks between "who is calling" and "what do they send", in the order of decision 6:
// dashboard function, account, rate limit, scope, project. Both faces call this one function.
import type { Context, Identity, ProjectAccess } from '../core/context';
import { problem, Problem } from '../core/errors';
import type { RootField } from './operations';

/**
 * The problem that refuses the caller, null where it may come in: to throw it through as many promises would cost more than
 * all the checks. Sets the rate-limit headers of the reply and the context's project, null where the operation acts on none.
 * @param projectId value of the field's project argument (path on REST), if it has one and it was sent
 */
export async function refusalOf(
  ctx: Context,
  field: RootField,
  projectId: string | undefined,
): Promise<Problem | null> {
  ctx.project = null;
  if (field.session) return admitSession(ctx, field);
  if (field.scope === 'none') return null;
  const { identity } = ctx;
  if (!identity) return problem('token_missing');
  const refusal = (await admitAccount(ctx, field, identity)) ?? scopeRefusal(identity, field.scope);
  if (refusal) return refusal;
  // Before the last check: a call refused there is counted in the project's activity.
  if (!field.global) {
    const project = await selectProject(ctx, identity, projectId);
    if (project instanceof Problem) return project;
    ctx.project = project;
  }
  return accessRefusal(field, identity, ctx.project);
}

/** Throws insufficient_scope unless the identity holds the scope. For relations. */
export function requireScope(identity: Identity, scope: RootField['scope']): void {
  const refusal = scopeRefusal(identity, scope);
  if (refusal) throw refusal;
}

function scopeRefusal({ scopes }: Identity, scope: RootField['scope']): Problem | null {
  if (scope === 'any' || scope === 'none' || scopes === null || scopes.includes(scope)) return null;
  return problem('insufficient_scope', `This operation needs the scope ${scope}.`, {
    required_scope: scope,
    token_scopes: scopes,
  });
}

async function admitSession(ctx: Context, field: RootField): Promise<Problem | null> {
  const { identity } = ctx;
  if (identity && identity.kind !== 'session') return problem('dashboard_only');
  if (field.session === 'signedOut') return null;
  return identity ? admitAccount(ctx, field, identity) : problem('session_required');
}

async function admitAccount(ctx: Context, field: RootField, identity: Identity): Promise<Problem | null> {
  if (identity.account_status === 'suspended') return problem('account_suspended');
  const answer = await ctx.limiter.take(identity.account_id, field.budget, 1);
  const headers = ctx.reply.headers;
  headers['RateLimit-Limit'] = String(answer.limit);
  headers['RateLimit-Remaining'] = String(answer.remaining);
  headers['RateLimit-Reset'] = String(answer.reset_seconds);
  headers['RateLimit-Policy'] = `"${field.budget}";q=${answer.limit};w=60`;
  if (answer.allowed) return null;
  return problem(
    'rate_limited',
    `The budget of ${answer.limit} ${field.budget} calls a minute is used up.`,
    {},
    { 'Retry-After': String(answer.reset_seconds) },
  );
}

async function selectProject(
  ctx: Context,
  identity: Identity,
  fromArgument: string | undefined,
): Promise<ProjectAccess | Problem> {
  const id = fromArgument ?? ctx.project_header ?? identity.project_id;
  if (id === null) return problem('project_header_missing');
  const allowed = identity.project_id ? [identity.project_id] : identity.project_ids;
  if (allowed && !allowed.includes(id)) return problem('project_not_allowed');
  return (await ctx.access(id)) ?? problem('project_not_found');
}

function accessRefusal(field: RootField, identity: Identity, project: ProjectAccess | null): Problem | null {
  if (field.access.personalKey && identity.kind === 'project') return problem('personal_key_required');
  if (field.access.unrestricted && identity.project_ids)
    return problem('project_not_allowed', 'The key is restricted to certain projects.');
  if (!project || field.kind === 'query') return null;
  if (project.role === 'viewer') return problem('role_not_permitted', undefined, { required_role: 'developer' });
  // A project key may change its own project: a stated exception to the owner rule (decision 10).
  const byOwner = project.role === 'owner' || identity.kind === 'project';
  return field.access.role === 'owner' && !byOwner
    ? problem('role_not_permitted', undefined, { required_role: 'owner' })
    : null;
}
