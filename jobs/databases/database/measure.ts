// Resource usage of a server as metrics: measured once a minute, in the periodic step of its job.
import type { EngineDriver, ServerMetrics, ObservedServer, ServerSpec } from '../../../drivers/database';
import type { Desired } from '../../../core/driver';
import type { databaseMetrics } from '../../../core/log/metrics';
import { addMetricPoints, type MetricPointInput } from '../../../models/applications/metric_point';
import type { JobContext } from '../../job';
import type { MetricsSample } from './row';

interface MeasuredServer {
  project_id: string;
  database_id: string;
  /** The database, or the replica. */
  part_id: string;
}

const EVERY_MS = 55_000;
const MIB = 2 ** 20;

type Readings = Partial<Record<keyof typeof databaseMetrics, number | null>>;

/**
 * Measures where it is time again. @returns what to compare the next one with. Never throws for what the server did.
 */
export async function measureServer(
  engine: EngineDriver,
  desired: Desired<ServerSpec>,
  seen: ObservedServer,
  place: MeasuredServer,
  before: MetricsSample | undefined,
  ctx: JobContext,
): Promise<MetricsSample | undefined> {
  const at = new Date();
  if (before && at.getTime() - Date.parse(before.at) < EVERY_MS) return before;
  const counted = await engine
    .metrics(desired, ctx)
    .catch((error: unknown) => void ctx.log.debug({ err: error }, 'a server could not be measured'));
  if (!counted) return before;
  await addMetricPoints(
    ctx.sql,
    pointsOf(place, at, { ...gauges(desired.spec, seen, counted), ...rates(before, counted, at) }),
  );
  const { cpu_seconds, transactions, read_operations, write_operations } = counted;
  return { at: at.toISOString(), cpu_seconds, transactions, read_operations, write_operations };
}

function gauges(
  { size }: ServerSpec,
  { storage_used_bytes, replication_lag_seconds }: ObservedServer,
  { connections, memory_bytes }: ServerMetrics,
): Readings {
  return {
    connections,
    storage_used_bytes,
    replication_lag_seconds,
    memory_percent: memory_bytes === null ? null : (100 * memory_bytes) / (size.memory_mb * MIB),
  };
}

/** Rates since the previous sample. A decreased counter means that the server was restarted. */
function rates(before: MetricsSample | undefined, now: ServerMetrics, at: Date): Readings {
  if (!before) return {};
  const seconds = (at.getTime() - Date.parse(before.at)) / 1000;
  const rate = (was: number | null, is: number | null): number | null =>
    was === null || is === null || is < was ? null : (is - was) / seconds;
  const cpu = rate(before.cpu_seconds, now.cpu_seconds);
  return {
    cpu_percent: cpu === null ? null : 100 * cpu,
    transactions_per_second: rate(before.transactions, now.transactions),
    read_iops: rate(before.read_operations, now.read_operations),
    write_iops: rate(before.write_operations, now.write_operations),
  };
}

function pointsOf(
  { project_id, database_id, part_id }: MeasuredServer,
  at: Date,
  readings: Readings,
): MetricPointInput[] {
  const known = Object.entries(readings).filter(
    (entry): entry is [string, number] => typeof entry[1] === 'number' && Number.isFinite(entry[1]),
  );
  return known.map(([metric, value]) => ({
    at,
    project_id,
    resource_id: database_id,
    part_id,
    metric,
    samples: 1,
    total: Math.round(value * 1000) / 1000,
  }));
}
