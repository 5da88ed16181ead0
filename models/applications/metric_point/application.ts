// Metrics of an application: its parts are its process types.
import type { Context } from '../../../core/context';
import { invalidQuery } from '../../../core/errors';
import { groupBy } from '../../../core/group_by';
import { applicationMetrics } from '../../../core/log/metrics';
import { Application } from '../application';
import { requireClusterMeasures } from '../cluster_facts';
import { loaderOf } from '../../base/load';
import { named } from '../../../db/statement';
import { metricSeriesOfMany, type Metrics, type Part } from './series';
import { spanOf, type MetricsArguments } from './span';

const PROCESSES = named(`select application_id, id, type from processes
  where application_id = any($1) and project_id = any($2) order by type`);

interface ApplicationMetricsArguments extends MetricsArguments {
  id: string;
  metrics?: readonly string[] | null;
  process_id?: string | null;
}

/** @throws not_found, invalid_query_parameter, engine_unavailable for CPU and memory that a cluster cannot measure */
export async function metricsOfApplication(
  ctx: Context,
  { id, ...query }: ApplicationMetricsArguments,
): Promise<Metrics> {
  return ((await metricsOf(ctx, [await Application.get(ctx, id)], query)) as [Metrics])[0];
}

/** Of the instances themselves. */
const MEASURED: ReadonlySet<string> = new Set(['cpu_percent', 'memory_mb']);

type Owner = Pick<Application, 'id' | 'project_id'>;

/** Applies to each application of a page: the default would return millions of points. */
const POINTS_BESIDE_MAX = 100;

/** Metrics beside an application, with few points. @throws invalid_query_parameter, engine_unavailable */
export async function metricsBeside(
  ctx: Context,
  application: Owner,
  args: Omit<ApplicationMetricsArguments, 'id'>,
): Promise<Metrics> {
  const { from, to, resolution_seconds } = spanOf(args);
  if ((to.getTime() - from.getTime()) / (resolution_seconds * 1000) > POINTS_BESIDE_MAX)
    throw invalidQuery(
      'resolution_seconds',
      `Application.metrics has at most ${POINTS_BESIDE_MAX} points. Choose a larger resolution_seconds.`,
    );
  const load = (owners: readonly Owner[]): Promise<Metrics[]> => metricsOf(ctx, owners, args);
  return loaderOf(ctx, `application.metrics:${JSON.stringify(args)}`, load).load(application);
}

async function metricsOf(
  ctx: Context,
  applications: readonly Owner[],
  { metrics, process_id, ...span }: Omit<ApplicationMetricsArguments, 'id'>,
): Promise<Metrics[]> {
  const rows = await ctx.sql.query<{ application_id: string; id: string; type: string }>(PROCESSES, [
    applications.map(({ id }) => id),
    applications.map(({ project_id }) => project_id),
  ]);
  const processes = groupBy(rows, ({ application_id }) => application_id);
  const names = metrics?.length ? [...new Set(metrics)] : Object.keys(applicationMetrics);
  const found = await metricSeriesOfMany(
    ctx,
    applications.map(({ id }) => ({ resource_id: id, parts: (processes.get(id) ?? []).map(partOf) })),
    { definitions: applicationMetrics, metrics: names, gone: 'process_id', only: process_id ?? null },
    span,
  );
  // What was measured before is shown; the other metrics are counted by the ingress.
  const isEmpty = found.every(({ series }) => series.every(({ points }) => points.length === 0));
  if (isEmpty && names.every((name) => MEASURED.has(name))) await requireClusterMeasures(ctx, 'CPU and memory');
  return found;
}

function partOf({ id, type }: { id: string; type: string }): Part {
  return {
    id,
    labels: [
      { name: 'process_id', value: id },
      { name: 'process_type', value: type },
    ],
    traffic: type === 'web',
  };
}
