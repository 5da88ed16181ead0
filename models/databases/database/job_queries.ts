// What the jobs of databases read and write beside their own rows.
import type { Config } from '../../../core/config';
import type { Sql } from '../../../core/context';
import type { SecretBox } from '../../../core/secrets';
import { isKept } from '../../base/bin';
import { openPassword } from '../database_user/password';
import { makeRowsDue, spreadRows, tearDownRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import type { DatabaseUserAccess } from '../../../schema/types';

export interface DesiredUser {
  id: string;
  /** Of the row, as its password was read. */
  version: number;
  username: string;
  password: string;
  access: DatabaseUserAccess;
  login: string | null;
  previous_password: string | null;
  previous_login: string | null;
  /** Its password is not in the server yet. */
  is_pending: boolean;
}

const USERS = named(
  `select id, version, username, access, password, login, previous_password, previous_login,
      applied_version < version as is_pending
    from database_users where database_id = $1
    order by is_default desc, id`,
);

/** Users as they should be, their passwords opened, the default one first. */
export async function desiredUsers(sql: Sql, secrets: SecretBox, databaseId: string): Promise<DesiredUser[]> {
  const rows = await sql.query<DesiredUser>(USERS, [databaseId]);
  return rows.map((row) => ({
    ...row,
    password: openPassword(secrets, row),
    previous_password: row.previous_password && openPassword(secrets, { id: row.id, password: row.previous_password }),
  }));
}

const APPLIED = named(`update database_users u set applied_version = wanted.version, applied_at = $3
  from unnest($1::text[], $2::bigint[]) as wanted (id, version), database_users before
  where u.id = wanted.id and before.id = u.id and u.applied_version < wanted.version
  returning u.id, before.applied_version > 0 as changed`);

/**
 * The server has these users with these passwords.
 * @returns ids of those whose password it had in another version before: what uses it holds an old one
 */
export async function markUsersApplied(sql: Sql, users: readonly DesiredUser[]): Promise<string[]> {
  const rows = await sql.query<{ id: string; changed: boolean }>(APPLIED, [
    users.map(({ id }) => id),
    users.map(({ version }) => version),
    new Date().toISOString(),
  ]);
  return rows.filter(({ changed }) => changed).map(({ id }) => id);
}

/** Endpoints at the port of a server: they are up to date when it is. */
export interface DirectEndpoint {
  id: string;
  version: number;
  allowed_sources: string[];
  /** Applications use it. */
  attached: boolean;
}

const ENDPOINTS =
  named(`select id, version, case access when 'public' then allowed_sources else '[]' end as allowed_sources,
      exists (select 1 from database_attachments a where a.endpoint_id = e.id and a.deleted_at is null) as attached
    from database_endpoints e
  where database_id = $1 and port = $2 and deleted_at is null order by id`);
const ACTIVE = named(`update database_endpoints e set status = 'active', status_reason = null,
    observed_generation = observed_generation + 1
  from unnest($1::text[], $2::bigint[]) as seen (id, version)
    where e.id = seen.id and e.version = seen.version and e.status <> 'active' and e.deleted_at is null`);

/**
 * Networks whose clients may connect, beside those of this host. Where a cluster runs applications, their pods may
 * connect to what is attached.
 */
export function allowedSourcesOf(
  endpoints: readonly Pick<DirectEndpoint, 'allowed_sources' | 'attached'>[],
  { workloads, databaseSourcesOfPods }: Pick<Config, 'workloads' | 'databaseSourcesOfPods'>,
): string[] {
  const isForPods = workloads === 'kubernetes' && endpoints.some(({ attached }) => attached);
  const named = endpoints.flatMap(({ allowed_sources }) => allowed_sources);
  return [...new Set([...named, ...(isForPods ? databaseSourcesOfPods.map(withBits) : [])])];
}

function withBits(source: string): string {
  return source.includes('/') ? source : `${source}/32`;
}

export function directEndpoints(sql: Sql, databaseId: string, port: number): Promise<DirectEndpoint[]> {
  return sql.query<DirectEndpoint>(ENDPOINTS, [databaseId, port]);
}

/** Marks endpoints as applied: the server enforces their allowed addresses. */
export async function markEndpointsApplied(sql: Sql, endpoints: readonly DirectEndpoint[]): Promise<void> {
  if (endpoints.length)
    await sql.query(ACTIVE, [endpoints.map(({ id }) => id), endpoints.map(({ version }) => version)]);
}

const FOLLOWERS = named('select server_id from database_replicas where database_id = $1 order by id');

/** Servers that follow the database, those in tear-down included. */
export async function followingServers(sql: Sql, databaseId: string): Promise<string[]> {
  return (await sql.query<{ server_id: string }>(FOLLOWERS, [databaseId])).map(({ server_id }) => server_id);
}

const SERVER = named('select server_id from databases where id = $1');

/** Names the place of the backups of a database, also of one that is deleted but not yet gone; null where it is. */
export async function findServer(sql: Sql, databaseId: string): Promise<string | null> {
  const [row] = await sql.query<{ server_id: string }>(SERVER, [databaseId]);
  return row?.server_id ?? null;
}

const FREE_PORT = named('delete from database_ports where owner_id = $1');

/** The server is gone: its port is another's, even while the row is kept for a backup. */
export async function releasePort(sql: Sql, ownerId: string): Promise<void> {
  await sql.query(FREE_PORT, [ownerId]);
}

/** Something that replicas follow has changed: they look soon, after the step that they are at. */
export async function wakeReplicas(sql: Sql, databaseId: string): Promise<void> {
  const where = 'database_id = $1 and deleted_at is null';
  await makeRowsDue(sql, { table: 'database_replicas', where, values: [databaseId] });
}

/** Removes the replica row after its promotion: its server belongs to a database now, or no longer exists. */
export async function endPromotion(sql: Sql, serverId: string): Promise<void> {
  const where = `server_id = $1 and status = 'promoting'`;
  await tearDownRows(sql, { table: 'database_replicas', where, values: [serverId] });
}

const HELD = named(`select exists (select 1 from database_backups b where database_id = $1
    and (deleted_at is null or ${isKept('b')})) as kept,
  exists (select 1 from database_backups where database_id = $1) or exists (select 1 from database_endpoints
    where database_id = $1) or exists (select 1 from database_replicas where database_id = $1)
    or exists (select 1 from database_imports where database_id = $1) as held`);

/** Whether rows depend on a deleted database; `kept`: a backup does, during its grace period. */
export async function findDependents(sql: Sql, databaseId: string): Promise<{ kept: boolean; held: boolean }> {
  const [row] = await sql.query<{ kept: boolean; held: boolean }>(HELD, [databaseId]);
  return row ?? { kept: false, held: false };
}

const RUNNING = {
  databases: `deleted_at is null and status <> 'stopped'`,
  database_replicas: 'deleted_at is null',
};
const SPREAD_MS = 2_000;

/** After a start of the host nothing runs: whatever should is found soon. */
export async function wakeAllServers(sql: Sql, table: keyof typeof RUNNING): Promise<void> {
  await spreadRows(sql, { table, where: RUNNING[table], values: [] }, SPREAD_MS);
}
