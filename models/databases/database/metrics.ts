// Metrics of a database: its parts are its servers, the database itself and its replicas.
import type { Context } from '../../../core/context';
import { databaseMetrics } from '../../../core/log/metrics';
import { ManagedDatabase } from '../database';
import { named } from '../../../db/statement';
import { metricSeries, type Metrics, type Part } from '../../applications/metric_point/series';
import type { MetricsArguments } from '../../applications/metric_point/span';

const REPLICAS = named(
  `select id, name from database_replicas where database_id = $1 and project_id = $2 and deleted_at is null
    order by id`,
);

interface DatabaseMetricsArguments extends MetricsArguments {
  id: string;
  metrics?: readonly string[] | null;
  replica_id?: string | null;
}

/** @throws not_found, invalid_query_parameter */
export async function metricsOfDatabase(
  ctx: Context,
  { id, metrics, replica_id, ...span }: DatabaseMetricsArguments,
): Promise<Metrics> {
  const database = await ManagedDatabase.get(ctx, id);
  const replicas = await ctx.sql.query<{ id: string; name: string }>(REPLICAS, [database.id, database.project_id]);
  const primary: Part = { id: database.id, labels: [{ name: 'role', value: 'primary' }], traffic: false };
  const parts = [primary, ...replicas.map(partOf)];
  const names = metrics?.length ? [...new Set(metrics)] : Object.keys(databaseMetrics);
  return metricSeries(
    ctx,
    {
      resource_id: database.id,
      definitions: databaseMetrics,
      metrics: names,
      parts,
      gone: 'replica_id',
      only: replica_id ?? null,
    },
    span,
  );
}

function partOf({ id, name }: { id: string; name: string }): Part {
  return {
    id,
    labels: [
      { name: 'role', value: 'replica' },
      { name: 'replica_id', value: id },
      { name: 'replica_name', value: name },
    ],
    traffic: false,
    follower: true,
  };
}
