// The checks between "who is calling" and "what do they send", in the order of docs/decisions/rules.md §6:
// dashboard function, account, rate limit, scope, project. contract/admission.ts calls them for both faces.
import type { Budget, Context, Identity, ProjectAccess } from '../core/context';
import { problem } from '../core/errors';
import { revealsSecrets } from '../core/accounts/scopes';
import { requireDestroying } from './destroying';
import type { RootField } from './operations';

/** How a call identifies its project, besides the header. */
export interface ProjectPlace {
  /** Value of the field's project argument (path on REST), if it has one and it was sent. */
  projectId: string | undefined;
  /** Id of the resource that the call is about, where the project is found by it if nothing else names one. */
  resourceId?: string | undefined;
}

/**
 * Lets the caller in, or throws the problem that refuses it. Sets the rate-limit headers of the reply and the context's
 * project, null where the operation acts on none.
 */
export async function requireAllowed(ctx: Context, field: RootField, place: ProjectPlace): Promise<void> {
  ctx.project = null;
  if (field.session) return requireSession(ctx, field);
  if (field.scope === 'none') return;
  const { identity } = ctx;
  if (!identity) throw problem('token_missing');
  await requireBudget(ctx, identity, field.budget);
  await requireRights(ctx, identity, field, place);
}

/**
 * Checks a caller that was let in before once more, for a call that lasts; takes nothing of the budget. Renews the
 * context's identity and project. @throws the problem that would refuse the call by now
 */
export async function requireStillAllowed(
  ctx: Context,
  field: RootField,
  projectId: string | undefined,
): Promise<void> {
  if (field.scope === 'none' && !field.session) return;
  const identity = await ctx.currentIdentity();
  if (!identity) throw problem('token_missing');
  ctx.identity = identity;
  if (identity.account_status === 'suspended') throw problem('account_suspended');
  if (!field.session) await requireRights(ctx, identity, field, { projectId });
}

/** Checks the rights for an operation that another one runs in the selected project, for the same caller. */
export async function requireRightsOfNested(ctx: Context, field: RootField): Promise<void> {
  if (!ctx.identity) throw problem('token_missing');
  await requireRights(ctx, ctx.identity, field, { projectId: ctx.project?.id });
}

async function requireRights(ctx: Context, identity: Identity, field: RootField, place: ProjectPlace): Promise<void> {
  // What it says of itself a paused key may still read.
  if (identity.paused_at && field.scope !== 'any') throw problem('key_paused');
  for (const scope of [field.scope, ...field.alsoScopes]) requireScope(identity, scope);
  if (field.destroys) requireDestroying(identity);
  // Before the last check: a call refused there is counted in the project's activity.
  if (!field.global) ctx.project = await selectProject(ctx, identity, place);
  requireAccess(field, identity, ctx.project);
}

/** Writes, and reads that would let a viewer write: of secrets (docs/decisions/rules.md §39), and of what runs code. */
export function isClosedToViewers({ kind, scope }: RootField): boolean {
  return kind === 'mutation' || scope === 'deploy' || revealsSecrets(scope);
}

/** Throws insufficient_scope unless the identity holds the scope. */
export function requireScope({ scopes }: Identity, scope: RootField['scope']): void {
  if (scope === 'any' || scope === 'none' || scopes === null || scopes.includes(scope)) return;
  throw problem('insufficient_scope', `This operation needs the scope ${scope}.`, {
    required_scope: scope,
    token_scopes: scopes,
  });
}

async function requireSession(ctx: Context, field: RootField): Promise<void> {
  const { identity } = ctx;
  if (identity && identity.kind !== 'session') throw problem('dashboard_only');
  if (field.session === 'signedOut') return;
  if (!identity) throw problem('session_required');
  await requireBudget(ctx, identity, field.budget);
}

/** Charges the account's rate-limit budget and sets the RateLimit headers. @throws account_suspended, rate_limited */
export async function requireBudget(ctx: Context, identity: Identity, budget: Budget, points = 1): Promise<void> {
  if (identity.account_status === 'suspended') throw problem('account_suspended');
  const answer = await ctx.limiter.take(identity.account_id, budget, points);
  const headers = ctx.reply.headers;
  headers['RateLimit-Limit'] = String(answer.limit);
  headers['RateLimit-Remaining'] = String(answer.remaining);
  headers['RateLimit-Reset'] = String(answer.reset_seconds);
  headers['RateLimit-Policy'] = `"${budget}";q=${answer.limit};w=60`;
  if (answer.allowed) return;
  throw problem(
    'rate_limited',
    `The rate limit of ${answer.limit} ${budget} calls per minute is used up.`,
    {},
    { 'Retry-After': String(answer.reset_seconds) },
  );
}

async function selectProject(
  ctx: Context,
  identity: Identity,
  { projectId, resourceId }: ProjectPlace,
): Promise<ProjectAccess> {
  const id = projectId ?? ctx.project_header ?? identity.project_id;
  if (id === null && resourceId !== undefined && !identity.project_ids) return projectOfResource(ctx, resourceId);
  if (id === null) throw problem('project_header_missing');
  const allowed = identity.project_id ? [identity.project_id] : identity.project_ids;
  if (allowed && !allowed.includes(id)) throw problem('project_not_allowed');
  const project = await ctx.access(id);
  if (!project) throw problem('project_not_found');
  return project;
}

/** A resource of a project of others is one that does not exist. */
async function projectOfResource(ctx: Context, resourceId: string): Promise<ProjectAccess> {
  const id = await ctx.projectOf(resourceId);
  const project = id && (await ctx.access(id));
  if (!project) throw problem('not_found');
  return project;
}

function requireAccess(field: RootField, identity: Identity, project: ProjectAccess | null): void {
  if (field.access.personalKey && identity.kind === 'project') throw problem('personal_key_required');
  if (field.access.unrestricted && identity.project_ids)
    throw problem('project_not_allowed', 'The key is restricted to certain projects.');
  if (!project) return;
  if (project.role === 'viewer' && isClosedToViewers(field))
    throw problem('role_not_permitted', undefined, { required_role: 'developer' });
  if (field.kind === 'query') return;
  // A project key may change its own project: a stated exception to the owner rule (docs/decisions/rules.md §10).
  const isOwner = project.role === 'owner' || identity.kind === 'project';
  if (field.access.role === 'owner' && !isOwner)
    throw problem('role_not_permitted', undefined, { required_role: 'owner' });
}
