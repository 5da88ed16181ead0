// What the job of endpoints reads and writes beside its own row.
import type { Sql } from '../../core/context';
import { named } from '../../db/statement';

const OWN = named(
  'select 1 from database_ports p join database_endpoints e on e.id = p.owner_id and e.port = p.port where p.owner_id = $1',
);

/** Whether something else than a server has to listen for the endpoint. */
export async function hasOwnPort(sql: Sql, endpointId: string): Promise<boolean> {
  return (await sql.query(OWN, [endpointId])).length > 0;
}

// Those that something listens for: also one whose pooling has ended, until it has let go of that.
const WAKE =
  named(`update database_endpoints set generation = generation + 1, next_at = now(), attempts = 0, deadline_at = null
  where database_id = $1 and deleted_at is null and exists (
    select 1 from database_ports p where p.owner_id = database_endpoints.id and (p.port = database_endpoints.port or database_endpoints.driver is not null))`);
const NOTIFY = named(`select pg_notify('due', 'database_endpoints')`);

/** What listens before the servers of a database is looked at: they are others, or have other users. */
export async function wakeEndpoints(sql: Sql, databaseId: string): Promise<void> {
  await sql.query(WAKE, [databaseId]);
  await sql.query(NOTIFY, []);
}

const LOOK = named(`update database_endpoints set next_at = least(next_at, now() + random() * interval '1 second')
  where deleted_at is null and status <> 'failed' and exists (select 1 from database_ports p where p.owner_id = database_endpoints.id)`);

/** After a start of the host nothing listens: whatever should is found soon. */
export async function wakeAllEndpoints(sql: Pick<Sql, 'query'>): Promise<void> {
  await sql.query(LOOK, []);
}

const POOLS = named(
  'select * from database_endpoints where database_id = $1 and pool_mode is not null and driver is not null and deleted_at is null order by id',
);

/** Endpoints of a database that were pooled before, with every column. */
export function poolsOf<Row>(sql: Sql, databaseId: string): Promise<Row[]> {
  return sql.query<Row>(POOLS, [databaseId]);
}

/** An endpoint whose program has a log. */
export interface LoggedEndpoint {
  id: string;
  project_id: string;
  database_id: string;
  replica_id: string | null;
  pooled: boolean;
}

const LOGGED = named(
  'select id, project_id, database_id, replica_id, pool_mode is not null as pooled from database_endpoints where driver is not null and deleted_at is null',
);

export function loggedEndpoints(sql: Sql): Promise<LoggedEndpoint[]> {
  return sql.query<LoggedEndpoint>(LOGGED, []);
}

/** A replica that stands behind endpoints. */
export interface ReplicaBehind {
  server_id: string;
  port: number;
  tenant: number;
  tls_certificate: string | null;
  tls_key: string | null;
}

const REPLICA = 'select server_id, port, tenant, tls_certificate, tls_key from database_replicas';
const ONE = named(`${REPLICA} where id = $1 and deleted_at is null and status <> 'promoting'`);
const ALL = named(`${REPLICA} where database_id = $1 and deleted_at is null and status <> 'promoting' order by id`);

export async function replicaBehind(sql: Sql, replicaId: string): Promise<ReplicaBehind | null> {
  const [row] = await sql.query<ReplicaBehind>(ONE, [replicaId]);
  return row ?? null;
}

/** One that is promoted takes writes, which nobody means for it: it is none of them from that moment on. */
export function replicasBehind(sql: Sql, databaseId: string): Promise<ReplicaBehind[]> {
  return sql.query<ReplicaBehind>(ALL, [databaseId]);
}

const LOST = named(
  'select lost.id from unnest($1::text[]) as lost (id) where not exists (select 1 from database_endpoints e where e.id = lost.id)',
);

/** Those of the ids whose row has gone. */
export async function endpointsWithoutRow(sql: Sql, ids: readonly string[]): Promise<string[]> {
  return (await sql.query<{ id: string }>(LOST, [ids])).map(({ id }) => id);
}
