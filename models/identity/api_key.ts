// API keys as the dashboard and the operator make them. How a request is recognised by one:
// models/identity/identity.ts.
import type { Context, Identity } from '../../core/context';
import { problem, validationFailed, type FieldError } from '../../core/errors';
import { mintId } from '../../core/ids';
import { limits } from '../../core/limits';
import { isScope, scopes as knownScopes } from '../../core/accounts/scopes';
import { mintToken, type TokenKind } from '../../core/accounts/tokens';
import type { CreatePersonalKeyInput, CreateProjectKeyInput } from '../../schema/types';
import { projectAccess } from './identity';
import { requireRole } from './role';
import type { Page } from '../base/page';
import { newest, noteChange, type NewestArguments } from '../base/row';
import { requireBelow } from '../base/quota';
import { named } from '../../db/statement';
import { sessionUser } from './user';

interface ApiKeyRow {
  id: string;
  kind: TokenKind;
  name: string;
  prefix: string;
  scopes: string[] | null;
  project_ids: string[] | null;
  project_id: string | null;
  may_destroy: boolean;
  paused_at: string | null;
  created_by: string | null;
  client_id: string | null;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
}

/** A new key; `token` is its value, which is stored nowhere. */
export interface CreatedKey {
  key: ApiKeyRow;
  token: string;
}

const COLUMNS =
  'id, kind, name, prefix, scopes, project_ids, project_id, may_destroy, paused_at, created_by, client_id, ' +
  'created_at, expires_at, last_used_at';
// A connection of an OAuth client expires when it has not been used for long.
const OF_USER = `select ${COLUMNS} from api_keys where user_id = $1 and revoked_at is null
  and (kind <> 'oauth' or expires_at > now())`;
const OF_PROJECT = `select ${COLUMNS} from api_keys where project_id = $1 and revoked_at is null`;
const LOCK_USER = named('select 1 from users where id = $1 for update');
const LOCK_PROJECT = named('select 1 from projects where id = $1 for update');
const COUNT_OF_USER = named(
  `select count(*)::int as used from api_keys where user_id = $1 and kind = 'personal' and revoked_at is null`,
);
const COUNT_OF_PROJECT = named(
  'select count(*)::int as used from api_keys where project_id = $1 and revoked_at is null',
);
const PERSONAL_KEYS = { max: limits.keysPerUser, resource: 'personal_keys', parent: 'A user', rows: 'keys' };
const PROJECT_KEYS = { max: limits.keysPerProject, resource: 'project_keys', parent: 'A project', rows: 'keys' };
const INSERT =
  named(`insert into api_keys (id, kind, name, prefix, hash, user_id, project_id, scopes, project_ids, may_destroy,
    created_by, expires_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) returning ${COLUMNS}`);
const REVOKE_ANY = named('update api_keys set revoked_at = now() where id = $1 and revoked_at is null returning id');
const REVOKE_OF_USER = named(
  `update api_keys set revoked_at = now() where user_id = $1 and revoked_at is null returning ${COLUMNS}`,
);
const ACTIVE_OF_USER = named(`${OF_USER} and (expires_at is null or expires_at > now()) order by id desc`);
const REVOKE = named(
  `update api_keys set revoked_at = now() where id = $1 and revoked_at is null and (user_id = $2 or project_id = $3)
    returning id, name`,
);

/** One page of the person's own keys. */
export function listPersonalKeys(ctx: Context, args: NewestArguments): Promise<Page<ApiKeyRow>> {
  return newest<ApiKeyRow>(ctx, args, {
    text: OF_USER,
    values: [sessionUser(ctx).id],
    id: 'id',
    idOf: (row) => row.id,
  });
}

/** One page of a project's keys, for its members. @throws project_not_found */
export async function listProjectKeys(
  ctx: Context,
  projectId: string,
  args: NewestArguments,
): Promise<Page<ApiKeyRow>> {
  await requireRole(ctx, projectId, 'viewer');
  return newest<ApiKeyRow>(ctx, args, { text: OF_PROJECT, values: [projectId], id: 'id', idOf: (row) => row.id });
}

/**
 * A key that acts as the person. @throws validation_failed, reference_not_found (a project that is out of reach),
 * quota_exceeded
 */
export async function createPersonalKey(ctx: Context, input: CreatePersonalKeyInput): Promise<CreatedKey> {
  const user_id = sessionUser(ctx).id;
  checkInput(input);
  for (const [index, id] of (input.project_ids ?? []).entries()) {
    if (await projectAccess(ctx.sql, ctx.identity as Identity, id)) continue;
    throw problem('reference_not_found', 'The key can only be restricted to projects that you are a member of.', {
      field: `project_ids.${index}`,
    });
  }
  await ctx.sql.query(LOCK_USER, [user_id]);
  await requireBelow(ctx, COUNT_OF_USER, user_id, PERSONAL_KEYS);
  return insertKey(ctx, 'personal', { ...input, user_id });
}

/**
 * A key that acts as the project. It may change the project itself, so only owners make one. @throws project_not_found,
 * role_not_permitted, quota_exceeded
 */
export async function createProjectKey(
  ctx: Context,
  projectId: string,
  input: CreateProjectKeyInput,
): Promise<CreatedKey> {
  await requireRole(ctx, projectId, 'owner');
  return mintProjectKey(ctx, projectId, input);
}

/** As createProjectKey, for the operator: without a check of the role. @throws quota_exceeded */
export async function mintProjectKey(
  ctx: Context,
  projectId: string,
  input: CreateProjectKeyInput,
): Promise<CreatedKey> {
  await ctx.sql.query(LOCK_PROJECT, [projectId]);
  await requireBelow(ctx, COUNT_OF_PROJECT, projectId, PROJECT_KEYS);
  return insertKey(ctx, 'project', { ...input, project_id: projectId });
}

/** Stops one of the person's keys at once. @throws not_found */
export function revokePersonalKey(ctx: Context, id: string): Promise<void> {
  return revoke(ctx, id, { user_id: sessionUser(ctx).id });
}

/** The person's keys that remain valid after a change of password; `isRevoking` revokes all of them first. */
export async function settlePersonalKeys(
  ctx: Context,
  isRevoking: boolean,
): Promise<{ revoked_keys: ApiKeyRow[]; active_keys: ApiKeyRow[] }> {
  const { id } = sessionUser(ctx);
  const revoked_keys = isRevoking ? await ctx.sql.query<ApiKeyRow>(REVOKE_OF_USER, [id]) : [];
  for (const key of revoked_keys) await ctx.forget({ key_id: key.id });
  return { revoked_keys, active_keys: await ctx.sql.query<ApiKeyRow>(ACTIVE_OF_USER, [id]) };
}

/** Stops a key of the project at once. @throws project_not_found, role_not_permitted, not_found */
export async function revokeProjectKey(ctx: Context, projectId: string, id: string): Promise<void> {
  await requireRole(ctx, projectId, 'developer');
  await revoke(ctx, id, { project_id: projectId });
}

/** For the operator: stops any key at once. @returns false where there is none */
export async function revokeAnyKey(ctx: Context, id: string): Promise<boolean> {
  const revoked = await ctx.sql.query(REVOKE_ANY, [id]);
  await ctx.forget({ key_id: id });
  return revoked.length > 0;
}

interface KeyOwner {
  user_id?: string;
  project_id?: string;
}

async function insertKey(
  ctx: Context,
  kind: TokenKind,
  values: Partial<CreatePersonalKeyInput> & KeyOwner,
): Promise<CreatedKey> {
  const { token, prefix, hash } = mintToken(kind);
  const { name, user_id = null, project_id = null, scopes = null, project_ids = null, expires_at = null } = values;
  const may_destroy = values.may_destroy ?? true;
  const id = mintId('key');
  const [key] = await ctx.sql.query<ApiKeyRow>(INSERT, [
    id,
    kind,
    name,
    prefix,
    hash,
    user_id,
    project_id,
    scopes,
    project_ids,
    may_destroy,
    ctx.identity?.user?.id ?? null,
    expires_at,
  ]);
  noteChange(
    ctx,
    { type: 'api_key', id, name: name ?? null },
    ['name', 'scopes', 'project_ids', 'may_destroy', 'expires_at'].filter((field) => field in values),
  );
  return { key: key as ApiKeyRow, token };
}

async function revoke(ctx: Context, id: string, owner: KeyOwner): Promise<void> {
  const [row] = await ctx.sql.query<{ id: string; name: string }>(REVOKE, [
    id,
    owner.user_id ?? null,
    owner.project_id ?? null,
  ]);
  if (!row) throw problem('not_found', 'There is no such key.');
  await ctx.forget({ key_id: id });
  noteChange(ctx, { type: 'api_key', ...row });
}

/** Validation beyond the SDL: scopes are those of core/accounts/scopes.ts, the expiry is in the future. */
function checkInput({ scopes, expires_at }: CreatePersonalKeyInput): void {
  const errors: FieldError[] = [];
  for (const [index, scope] of scopes.entries()) {
    if (!isScope(scope))
      errors.push({
        field: `scopes.${index}`,
        code: 'not_in_enum',
        detail: `must be one of ${Object.keys(knownScopes).join(', ')}`,
      });
  }
  if (expires_at != null && Date.parse(expires_at) <= Date.now())
    errors.push({ field: 'expires_at', code: 'too_small', detail: 'must be in the future' });
  if (errors.length) throw validationFailed(errors);
}
