// Connections: what a person has allowed a program to do. Each is a key of the kind `oauth`, so that it is listed,
// revoked and noted like other keys; its tokens change, the key stays.
import { randomBytes } from 'node:crypto';
import type { Context, Identity, Sql } from '../../../core/context';
import { problem } from '../../../core/errors';
import { mintId } from '../../../core/ids';
import { limits } from '../../../core/limits';
import { REFRESH_DAYS } from '../../../core/accounts/oauth';
import type { Scope } from '../../../core/accounts/scopes';
import { OAUTH_PREFIX, sha256 } from '../../../core/accounts/tokens';
import { named } from '../../../db/statement';
import { noteChange } from '../../base/row';
import { projectAccess } from '../identity';
import { sessionUser } from '../user';

interface Agreement {
  client_id: string;
  name: string;
  scopes: readonly Scope[];
  /** null = all projects of the person. */
  project_ids: readonly string[] | null;
  may_destroy: boolean;
}

const INSERT = named(`insert into api_keys (id, kind, name, prefix, hash, user_id, scopes, project_ids, created_by,
    client_id, may_destroy, expires_at)
  values ($1, 'oauth', $2, $3, $4, $5, $6, $7, $5, $8, $9, now() + interval '15 minutes')`);
// A client that has registered itself lasts as long as what people have allowed it.
const EXTEND = named(`with used as (update api_keys set expires_at = now() + make_interval(days => $2)
    where id = $1 and revoked_at is null returning client_id)
  update oauth_records c set expires_at = now() + make_interval(days => $2)
  from used where c.kind = 'Client' and c.hash = encode(sha256(convert_to(used.client_id, 'UTF8')), 'hex')
    and c.registered_from is not null and c.expires_at < now() + make_interval(days => $2 - 1)`);
const END = named('update api_keys set revoked_at = now() where id = $1 and revoked_at is null');
const END_OLDEST = named(`update api_keys set revoked_at = now() where id in (
    select id from api_keys where user_id = $1 and kind = 'oauth' and revoked_at is null
    order by coalesce(last_used_at, created_at) desc offset $2) returning id`);
const PERSON = named(`select u.id from users u join accounts a on a.id = u.account_id
  where u.id = $1 and a.status = 'active'`);

/**
 * Notes what the person of the session agreed to. It ends in a quarter of an hour unless the program gets tokens; the
 * connection that was used least recently ends where the person has too many.
 * @returns id of the key @throws reference_not_found (a project that is out of reach)
 */
export async function createConnection(ctx: Context, agreed: Agreement): Promise<string> {
  const { id: user } = sessionUser(ctx);
  const { client_id, name, scopes, project_ids, may_destroy } = agreed;
  for (const [index, project] of (project_ids ?? []).entries())
    if (!(await projectAccess(ctx.sql, ctx.identity as Identity, project)))
      throw problem('reference_not_found', 'You are not a member of this project.', { field: `project_ids.${index}` });
  const ended = await ctx.sql.query<{ id: string }>(END_OLDEST, [user, limits.keysPerUser - 1]);
  for (const { id } of ended) await ctx.forget({ key_id: id });
  const id = mintId('key');
  // A random hash that matches no token: the tokens of a connection are separate records.
  const hash = sha256(randomBytes(32).toString('hex'));
  await ctx.sql.query(INSERT, [id, name, OAUTH_PREFIX, hash, user, scopes, project_ids, client_id, may_destroy]);
  noteChange(ctx, { type: 'api_key', id, name }, ['name', 'scopes', 'project_ids', 'may_destroy']);
  return id;
}

/** New tokens were made: the connection lasts as long as the refresh token. */
export async function extendConnection(sql: Sql, id: string): Promise<void> {
  await sql.query(EXTEND, [id, REFRESH_DAYS]);
}

/** Ends a connection at once. */
export async function endConnection(ctx: Context, id: string): Promise<void> {
  await ctx.sql.query(END, [id]);
  await ctx.forget({ key_id: id });
}

/** Whether tokens may still be made for the person. */
export async function isActivePerson(sql: Sql, id: string): Promise<boolean> {
  return (await sql.query(PERSON, [id])).length > 0;
}
