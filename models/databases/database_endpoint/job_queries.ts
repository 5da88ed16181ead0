// What the job of endpoints reads and writes beside its own row.
import type { Sql } from '../../../core/context';
import { spreadRows, wakeRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';

const OWN = named(
  `select 1 from database_ports p join database_endpoints e on e.id = p.owner_id and e.port = p.port
    where p.owner_id = $1`,
);

/** Whether something else than a server has to listen for the endpoint. */
export async function hasOwnPort(sql: Sql, endpointId: string): Promise<boolean> {
  return (await sql.query(OWN, [endpointId])).length > 0;
}

const OWN_PORT = 'exists (select 1 from database_ports p where p.owner_id = database_endpoints.id';

/** Endpoints that have a listener look at it: the servers behind it are others, or have other users. */
export async function wakeEndpoints(sql: Sql, databaseId: string): Promise<void> {
  // Also one whose pooling has ended, until its listener is gone.
  const listener = 'p.port = database_endpoints.port or database_endpoints.driver is not null';
  const where = `database_id = $1 and deleted_at is null and ${OWN_PORT} and (${listener}))`;
  await wakeRows(sql, { table: 'database_endpoints', where, values: [databaseId] });
}

const SPREAD_MS = 1_000;

/** After a start of the host nothing listens: whatever should is found soon. */
export async function wakeAllEndpoints(sql: Sql): Promise<void> {
  const where = `deleted_at is null and ${OWN_PORT})`;
  await spreadRows(sql, { table: 'database_endpoints', where, values: [] }, SPREAD_MS);
}

const POOLS = named(
  `select * from database_endpoints where database_id = $1 and pool_mode is not null and driver is not null
    and deleted_at is null order by id`,
);

/** Endpoints of a database that were pooled before, with every column. */
export function poolsOf<Row>(sql: Sql, databaseId: string): Promise<Row[]> {
  return sql.query<Row>(POOLS, [databaseId]);
}

/** An endpoint whose program has a log. */
interface LoggedEndpoint {
  id: string;
  project_id: string;
  database_id: string;
  replica_id: string | null;
  pooled: boolean;
}

const LOGGED = named(
  `select id, project_id, database_id, replica_id, pool_mode is not null as pooled from database_endpoints
    where driver is not null and deleted_at is null`,
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

/** Replicas that may serve read endpoints. One being promoted is excluded: it accepts writes. */
export function replicasBehind(sql: Sql, databaseId: string): Promise<ReplicaBehind[]> {
  return sql.query<ReplicaBehind>(ALL, [databaseId]);
}

const LOST = named(
  `select lost.id from unnest($1::text[]) as lost (id) where not exists (select 1 from database_endpoints e
    where e.id = lost.id)`,
);

/** Returns the ids that have no row. */
export async function endpointsWithoutRow(sql: Sql, ids: readonly string[]): Promise<string[]> {
  return (await sql.query<{ id: string }>(LOST, [ids])).map(({ id }) => id);
}
