// Who a token or a session is, and what a caller may reach: read on every request, so named statements only.
import type { Identity, ProjectAccess, Role, Sql } from '../../core/context';
import { problem } from '../../core/errors';
import { isId } from '../../core/ids';
import type { Scope } from '../../core/accounts/scopes';
import { named } from '../../db/statement';
import type { AccountStatus, TokenKind } from '../../schema/types';

interface KeyRow {
  id: string;
  kind: TokenKind;
  name: string;
  prefix: string;
  scopes: Scope[] | null;
  project_ids: string[] | null;
  project_id: string | null;
  may_destroy: boolean;
  paused_at: string | null;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
  revoked_at: string | null;
  user_id: string | null;
  user_name: string | null;
  email: string | null;
  account_id: string;
  account_status: AccountStatus;
}

const KEYS = `select k.id, k.kind, k.name, k.prefix, k.scopes, k.project_ids, k.project_id, k.may_destroy, k.paused_at,
    k.created_at, k.expires_at, k.last_used_at, k.revoked_at,
  u.id as user_id, u.name as user_name, u.email, a.id as account_id, a.status as account_status
  from api_keys k left join users u on u.id = k.user_id left join projects p on p.id = k.project_id
  join accounts a on a.id = coalesce(u.account_id, p.account_id)
  where (k.project_id is null or p.deleted_at is null)`;
const KEY = named(`${KEYS} and k.hash = $1`);
const KEY_BY_ID = named(
  `${KEYS} and k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())`,
);

/**
 * The identity of a key by the SHA-256 of its token; null where it is unknown or revoked.
 * @throws token_expired
 */
export async function keyIdentity(sql: Sql, hash: string): Promise<Identity | null> {
  const [row] = await sql.query<KeyRow>(KEY, [hash]);
  if (!row || row.revoked_at) return null;
  if (row.expires_at && Date.parse(row.expires_at) <= Date.now()) throw problem('token_expired');
  return toIdentity(row);
}

const ACCESS_TOKEN = named(`select k.id, k.kind, k.name, k.prefix, t.scopes, k.project_ids, k.project_id, k.may_destroy,
    k.paused_at, k.created_at, t.expires_at, k.last_used_at, k.revoked_at, u.id as user_id, u.name as user_name,
    u.email,
    a.id as account_id, a.status as account_status
  from oauth_records t join api_keys k on k.id = t.grant_id join users u on u.id = k.user_id
    join accounts a on a.id = u.account_id
  where t.kind = 'AccessToken' and t.hash = $1`);

/**
 * The identity of an access token by its SHA-256; null where it is unknown, or the person has ended the connection.
 * @throws token_expired
 */
export async function accessTokenIdentity(sql: Sql, hash: string): Promise<Identity | null> {
  const [row] = await sql.query<KeyRow>(ACCESS_TOKEN, [hash]);
  if (!row || row.revoked_at) return null;
  if (row.expires_at && Date.parse(row.expires_at) <= Date.now()) throw problem('token_expired');
  return { ...toIdentity(row), token_hash: hash };
}

/** The identity of a key that was recognised before, by its id; null where it works no longer. */
export async function keyIdentityById(sql: Sql, id: string): Promise<Identity | null> {
  const [row] = await sql.query<KeyRow>(KEY_BY_ID, [id]);
  return row ? toIdentity(row) : null;
}

function toIdentity(row: KeyRow): Identity {
  const {
    id,
    kind,
    name,
    prefix,
    account_id,
    account_status,
    project_id,
    project_ids,
    may_destroy,
    paused_at,
    created_at,
    expires_at,
    last_used_at,
  } = row;
  const user = row.user_id ? { id: row.user_id, name: row.user_name ?? '', email: row.email ?? '' } : null;
  const scopes = kind === 'project' ? null : (row.scopes ?? []);
  return {
    kind,
    id,
    name,
    prefix,
    account_id,
    account_status,
    user,
    project_id,
    scopes,
    project_ids,
    may_destroy,
    paused_at,
    created_at,
    expires_at,
    last_used_at,
  };
}

interface SessionRow {
  id: string;
  created_at: string;
  expires_at: string;
  last_seen_at: string;
  user_id: string;
  user_name: string;
  email: string;
  account_id: string;
  account_status: AccountStatus;
}

const SESSIONS = `select s.id, s.created_at, s.expires_at, s.last_seen_at, u.id as user_id, u.name as user_name,
    u.email, a.id as account_id, a.status as account_status
  from sessions s join users u on u.id = s.user_id join accounts a on a.id = u.account_id
  where s.expires_at > now() and s.last_seen_at > now() - make_interval(hours => $2)`;
const SESSION = named(`${SESSIONS} and s.hash = $1`);
const SESSION_BY_ID = named(`${SESSIONS} and s.id = $1`);

/**
 * The identity of a dashboard session by the SHA-256 of its cookie; null where it is unknown, over, or idle for too
 * long.
 */
export async function sessionIdentity(sql: Sql, hash: string, idleHours: number): Promise<Identity | null> {
  const [row] = await sql.query<SessionRow>(SESSION, [hash, idleHours]);
  return row ? toSessionIdentity(row) : null;
}

/** The identity of a session that was recognised before, by its id; null as for sessionIdentity. */
export async function sessionIdentityById(sql: Sql, id: string, idleHours: number): Promise<Identity | null> {
  const [row] = await sql.query<SessionRow>(SESSION_BY_ID, [id, idleHours]);
  return row ? toSessionIdentity(row) : null;
}

function toSessionIdentity(row: SessionRow): Identity {
  const { id, account_id, account_status, created_at, expires_at, last_seen_at } = row;
  const user = { id: row.user_id, name: row.user_name, email: row.email };
  const noKey = { prefix: '', project_id: null, scopes: null, project_ids: null, may_destroy: true, paused_at: null };
  return {
    kind: 'session',
    id,
    name: 'Dashboard session',
    account_id,
    account_status,
    user,
    created_at,
    expires_at,
    last_used_at: last_seen_at,
    ...noKey,
  };
}

const MEMBER = named(`select p.id, p.name, p.account_id, p.default_region, m.role from projects p
    join members m on m.project_id = p.id
  where p.id = $1 and m.user_id = $2 and p.deleted_at is null`);
const OWN = named('select id, name, account_id, default_region from projects where id = $1 and deleted_at is null');

/** The caller's access to a project, null where it has none. A project key acts as developer in its project. */
export async function projectAccess(sql: Sql, identity: Identity, projectId: string): Promise<ProjectAccess | null> {
  // As sent: it may hold what PostgreSQL can't even compare.
  if (!isId('prj', projectId)) return null;
  if (identity.user) {
    const [row] = await sql.query<ProjectAccess>(MEMBER, [projectId, identity.user.id]);
    return row ?? null;
  }
  if (identity.project_id !== projectId) return null;
  const [row] = await sql.query<Omit<ProjectAccess, 'role'>>(OWN, [projectId]);
  return row ? { ...row, role: 'developer' as Role } : null;
}

const USED_KEYS = named('update api_keys set last_used_at = now() where id = any($1)');
const USED_SESSIONS = named('update sessions set last_seen_at = now() where id = any($1)');

/** Notes that keys and sessions were used; called every few seconds with what came together. */
export async function markUsed(sql: Sql, ids: string[]): Promise<void> {
  const keys = ids.filter((id) => id.startsWith('key_'));
  const sessions = ids.filter((id) => !id.startsWith('key_'));
  if (keys.length) await sql.query(USED_KEYS, [keys]);
  if (sessions.length) await sql.query(USED_SESSIONS, [sessions]);
}
