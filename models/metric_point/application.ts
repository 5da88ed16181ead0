// Metrics of an application: its parts are its process types.
import type { Context } from '../../core/context';
import { invalidQuery } from '../../core/errors';
import { applicationMetrics } from '../../core/metrics';
import { Application } from '../application';
import { named } from '../../db/statement';
import { metricSeries, type Metrics } from './series';
import { spanOf, type MetricsArguments } from './span';

const PROCESSES = named('select id, type from processes where application_id = $1 and project_id = $2 order by type');

interface ApplicationMetricsArguments extends MetricsArguments {
  id: string;
  metrics?: readonly string[] | null;
  process_id?: string | null;
}

/** @throws not_found, invalid_query_parameter */
export async function metricsOfApplication(
  ctx: Context,
  { id, ...asked }: ApplicationMetricsArguments,
): Promise<Metrics> {
  return metricsOf(ctx, await Application.get(ctx, id), asked);
}

/** Each application of a page has them: a request would else ask for millions of points. */
const POINTS_BESIDE_MAX = 100;

/** Metrics beside an application, with few points. @throws invalid_query_parameter */
export async function metricsBeside(
  ctx: Context,
  application: { id: string; project_id: string },
  args: Omit<ApplicationMetricsArguments, 'id'>,
): Promise<Metrics> {
  const { from, to, resolution_seconds } = spanOf(args);
  if ((to.getTime() - from.getTime()) / (resolution_seconds * 1000) > POINTS_BESIDE_MAX)
    throw invalidQuery(
      'resolution_seconds',
      `Application.metrics has at most ${POINTS_BESIDE_MAX} points. Choose a larger resolution_seconds.`,
    );
  return metricsOf(ctx, application, args);
}

async function metricsOf(
  ctx: Context,
  application: { id: string; project_id: string },
  { metrics, process_id, ...span }: Omit<ApplicationMetricsArguments, 'id'>,
): Promise<Metrics> {
  const processes = await ctx.sql.query<{ id: string; type: string }>(PROCESSES, [
    application.id,
    application.project_id,
  ]);
  const parts = processes.map((process) => ({
    id: process.id,
    labels: [
      { name: 'process_id', value: process.id },
      { name: 'process_type', value: process.type },
    ],
    traffic: process.type === 'web',
  }));
  const names = metrics?.length ? [...new Set(metrics)] : Object.keys(applicationMetrics);
  return metricSeries(
    ctx,
    {
      resource_id: application.id,
      definitions: applicationMetrics,
      metrics: names,
      parts,
      gone: 'process_id',
      only: process_id ?? null,
    },
    span,
  );
}
