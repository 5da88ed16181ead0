// Builds the desired listener of an endpoint from the rows.
import type { PoolSpec, SpreadSpec } from '../../../drivers/endpoint';
import { DriverError } from '../../../core/driver';
import { limits } from '../../../core/limits';
import { allowedSourcesOf, directEndpoints } from '../../../models/databases/database/job_queries';
import { findDatabase } from '../../../models/databases/database_backup/job_queries';
import {
  replicaBehind,
  replicasBehind,
  type ReplicaBehind,
} from '../../../models/databases/database_endpoint/job_queries';
import type { JobContext, LoopRow } from '../../job';
import { presentCertificate } from '../database/certificate';
import { requireEngineDriver, serverSizeOf, type DatabaseRow, type ExitHistory } from '../database/row';
import type { DatabaseEndpointAccess, DatabasePoolMode } from '../../../schema/types';

export interface EndpointRow extends LoopRow {
  project_id: string;
  database_id: string;
  replica_id: string | null;
  access: DatabaseEndpointAccess;
  allowed_sources: string[];
  pool_mode: DatabasePoolMode | null;
  pool_size: number | null;
  port: number;
  observed: ExitHistory | null;
}

const NO_TLS = { certificate: '', key: '' };

/** null: the server that it leads to is not there, or does not answer, at the moment. */
export async function desiredPool(row: EndpointRow, ctx: JobContext): Promise<PoolSpec | null> {
  const database = await requireDatabase(row, ctx);
  const behind = row.replica_id ? await replicaBehind(ctx.sql, row.replica_id) : database;
  if (!behind) return null;
  const spec = {
    ...(await listenerOf(row, database, ctx)),
    tenant: behind.tenant,
    mode: row.pool_mode ?? 'session',
    size: row.pool_size ?? limits.poolSizeDefault,
    database_name: database.database_name ?? '',
  };
  if (!database.running) return { ...spec, server: null, tls: NO_TLS };
  const tls = presentCertificate(behind, ctx.secrets);
  const server = tls && (await pooledServer(database, behind, ctx));
  return tls && server && { ...spec, server, tls };
}

/** The database has a size for each of its servers; a replica has no less. */
export async function desiredSpread(row: EndpointRow, ctx: JobContext): Promise<SpreadSpec> {
  const database = await requireDatabase(row, ctx);
  const servers = (await replicasBehind(ctx.sql, database.id)).map(({ server_id: id, port }) => ({ id, port }));
  const connections = serverSizeOf(database.database_package).max_connections * limits.replicasPerDatabase;
  return {
    ...(await listenerOf(row, database, ctx)),
    tenant: database.tenant,
    engine: database.engine,
    connections,
    servers,
  };
}

async function listenerOf(
  row: EndpointRow,
  { running }: DatabaseRow,
  { sql, config }: JobContext,
): Promise<Pick<PoolSpec, 'port' | 'network' | 'running' | 'allowed_sources'>> {
  const { port, project_id: network } = row;
  const endpoints = await directEndpoints(sql, row.database_id, port);
  return { port, network, running, allowed_sources: allowedSourcesOf(endpoints, config) };
}

// Users are read from the primary: replication delivers them to replicas with a short delay.
async function pooledServer(
  database: DatabaseRow,
  behind: DatabaseRow | ReplicaBehind,
  ctx: JobContext,
): Promise<PoolSpec['server']> {
  const engine = requireEngineDriver(ctx, database);
  if (!engine.pooled)
    throw new DriverError('unsupported', `Endpoints of a ${database.engine} database cannot be pooled.`);
  try {
    const primary = await engine.pooled({ id: database.server_id, port: database.port });
    return behind === database
      ? primary
      : { ...(await engine.pooled({ id: behind.server_id, port: behind.port })), logins: primary.logins };
  } catch (error) {
    if (!(error instanceof DriverError) || ctx.signal.aborted) throw error;
    ctx.log.debug({ err: error }, 'a pooled server does not answer');
    return null;
  }
}

async function requireDatabase(row: EndpointRow, ctx: JobContext): Promise<DatabaseRow> {
  const database = await findDatabase<DatabaseRow>(ctx.sql, row.database_id);
  if (!database) throw new Error('an endpoint without its database');
  return database;
}
