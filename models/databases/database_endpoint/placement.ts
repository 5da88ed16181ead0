// The address of an endpoint, and the servers behind it.
import type { Context } from '../../../core/context';
import { problem, validationFailed } from '../../../core/errors';
import { limits } from '../../../core/limits';
import { allocatePort } from '../../reference/capacity';
import { requireFeature, requirePackage } from '../database/offer';
import { named } from '../../../db/statement';
import type { DatabasePoolMode, DatabaseStatus } from '../../../schema/types';

export type PoolMode = DatabasePoolMode;

interface Server {
  id: string;
  engine: string;
  engine_version: string;
  on_cluster: boolean;
  database_package: string;
  status: DatabaseStatus;
}

const OWN = named('select port from database_ports where owner_id = $1');

/**
 * The port of an endpoint: the server's for a single server. A pool, and a balancer over replicas, get a separate port,
 * which the endpoint keeps from then on.
 * @throws capacity_unavailable
 */
export async function endpointPort(
  ctx: Context,
  id: string,
  pool_mode: PoolMode | null,
  server: { port: number } | null,
): Promise<number> {
  if (pool_mode === null && server) return server.port;
  const [own] = await ctx.sql.query<{ port: number }>(OWN, [id]);
  return own?.port ?? allocatePort(ctx, id);
}

/** Validates a pool and returns it in stored form. @throws validation_failed, engine_feature_unsupported */
export async function requirePool(
  ctx: Context,
  database: Server,
  pool_mode: PoolMode | null,
  size: number | null,
): Promise<{ pool_mode: PoolMode | null; pool_size: number | null }> {
  if (pool_mode === null && size !== null)
    throw validationFailed([{ field: 'pool_size', code: 'depends_on', detail: 'needs pool_mode' }]);
  if (pool_mode === null) return { pool_mode, pool_size: null };
  await requireFeature(ctx, database, 'pooling');
  const { max_connections: most } = await requirePackage(ctx, database.engine, database.database_package);
  if (size !== null && size > most)
    throw validationFailed([
      { field: 'pool_size', code: 'too_large', detail: `must be at most ${most}, the max_connections of the package` },
    ]);
  return { pool_mode, pool_size: size ?? Math.min(limits.poolSizeDefault, most) };
}

/**
 * Of an endpoint that leads to all replicas. A pool before what spreads connections would keep the few that it has, to
 * the replicas that it found first.
 * @throws engine_feature_unsupported
 */
export function requireUnpooled({ engine }: Server, pool_mode: PoolMode | null): void {
  if (pool_mode === null) return;
  throw problem(
    'engine_feature_unsupported',
    'An endpoint to all replicas cannot be pooled. Set `replica_id`, or leave out `pool_mode`.',
    { engine, feature: 'pooling' },
  );
}

/**
 * All replicas are reached through what spreads connections. @throws engine_feature_unsupported, invalid_state where
 * the database has no replica
 */
export async function requireSpreading(ctx: Context, database: Server, pool_mode: PoolMode | null): Promise<void> {
  requireUnpooled(database, pool_mode);
  await requireReplicas(ctx, database);
  const { haproxy } = (await ctx.catalogs.facts()).programs;
  if (!haproxy)
    throw problem('engine_feature_unsupported', haproxyMissing, { engine: database.engine, feature: 'replicas' });
}

/** @throws engine_feature_unsupported where the server is in the cluster, which only its pods reach */
export function requireOnHost({ engine, on_cluster }: Pick<Server, 'engine' | 'on_cluster'>): void {
  if (!on_cluster) return;
  throw problem(
    'engine_feature_unsupported',
    'This database runs in the cluster, where only applications of its project reach it. Leave out `access: public`.',
    { engine, feature: 'public' },
  );
}

const haproxyMissing =
  'Spreading connections over all replicas needs HAProxy on the host: an operator has to install the package ' +
  'haproxy. An endpoint to a single replica works without HAProxy.';

const REPLICAS = named(
  `select count(*) as count from database_replicas where database_id = $1 and deleted_at is null
    and status <> 'promoting'`,
);

async function requireReplicas(ctx: Context, database: Server): Promise<void> {
  const [row] = await ctx.sql.query<{ count: number }>(REPLICAS, [database.id]);
  if (!row?.count)
    throw problem('invalid_state', 'The database has no replica. Create one first.', {
      resource_status: database.status,
      allowed_statuses: [],
    });
}
