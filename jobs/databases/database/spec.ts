// Builds the desired spec of a database server from the rows.
import type { ServerSpec } from '../../../drivers/database';
import { PRELOADED } from '../../../core/catalog/postgresql_extensions';
import type { Desired } from '../../../core/driver';
import { openAdminPassword, serviceOf } from '../../../models/databases/database/credentials';
import {
  allowedSourcesOf,
  directEndpoints,
  followingServers,
  desiredUsers,
  type DirectEndpoint,
  type DesiredUser,
} from '../../../models/databases/database/job_queries';
import { preloadedExtensions } from '../../../models/databases/database_extension/job_queries';
import { serverLogins } from '../../../models/databases/database_user/logins';
import type { JobContext } from '../../job';
import { ensureCertificate } from './certificate';
import { serverSizeOf, type DatabaseRow } from './row';

/** The desired server, with the rows that it was built from: they are marked as applied once the server matches. */
export interface DesiredServer extends Desired<ServerSpec> {
  users: DesiredUser[];
  endpoints: DirectEndpoint[];
}

export async function desiredServer(row: DatabaseRow, ctx: JobContext): Promise<DesiredServer> {
  const tls = await ensureCertificate({ ...row, host: serviceOf(ctx.config, row) }, ctx);
  const users = await desiredUsers(ctx.sql, ctx.secrets, row.id);
  const endpoints = await directEndpoints(ctx.sql, row.id, row.port);
  const preloaded = await preloadedExtensions(ctx.sql, row.id, PRELOADED);
  const spec: ServerSpec = {
    engine: row.engine,
    version: row.engine_version,
    tenant: row.tenant,
    network: row.project_id,
    port: row.port,
    size: serverSizeOf(row.database_package),
    storage_gb: row.storage_gb,
    ...(row.nodes > 1 && { nodes: row.nodes }),
    running: row.running,
    database_name: row.database_name,
    admin_password: openAdminPassword(ctx.secrets, row),
    users: users.flatMap(serverLogins),
    tls,
    replica_of: null,
    allowed_sources: allowedSourcesOf(endpoints, ctx.config),
    replicas: await followingServers(ctx.sql, row.id),
    archive: row.engine === 'postgresql' && row.backup_schedule.enabled,
    ...(preloaded.length && { preloaded }),
  };
  return { id: row.server_id, spec, users, endpoints };
}
