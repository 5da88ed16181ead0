// What a sample means as points of metrics.
import { RESPONSE_TIME } from '../../core/log/metrics';
import type { Traffic } from '../../engines/ingress/ingress';
import type { UnitUsage } from '../../drivers/runtime';
import type { MetricPointInput } from '../../models/applications/metric_point';
import type { ProcessCount, SampledInstance, TrafficPart } from '../../models/applications/sample';

/** What one instance used since the sample before. */
export interface Used {
  instance: Omit<SampledInstance<unknown>, 'handle'>;
  /** Of one core; null where there is no sample before. */
  cpu_percent: number | null;
  memory_mb: number;
  /** Null where the host does not count per unit: then the bytes that the ingress moved stand for it. */
  network: { received: number; sent: number } | null;
}

export function networkBetween(before: UnitUsage, now: UnitUsage): Used['network'] {
  if (!before.network || !now.network) return null;
  return {
    received: Math.max(0, now.network.received_bytes - before.network.received_bytes),
    sent: Math.max(0, now.network.sent_bytes - before.network.sent_bytes),
  };
}

export function usagePoints(usage: readonly Used[], at: Date): MetricPointInput[] {
  return usage.flatMap(({ instance, cpu_percent, memory_mb, network }) => {
    const { project_id, application_id, preview_id, process_id: part_id } = instance;
    const point = (metric: string, samples: number, total: number): MetricPointInput => ({
      at,
      project_id,
      resource_id: preview_id ?? application_id,
      part_id,
      metric,
      samples,
      total,
    });
    const points = [point('memory_mb', 1, memory_mb)];
    if (cpu_percent !== null) points.push(point('cpu_percent', 1, cpu_percent));
    if (network)
      points.push(point('network_in_bytes', 0, network.received), point('network_out_bytes', 0, network.sent));
    return points;
  });
}

export function countPoints(processes: readonly ProcessCount[], at: Date): MetricPointInput[] {
  return processes.map(({ id, project_id, application_id, running }) => ({
    at,
    project_id,
    resource_id: application_id,
    part_id: id,
    metric: 'instances',
    samples: 1,
    total: running,
  }));
}

/** @param countedByHost instances whose network the host counts */
export function trafficPoints(
  traffic: Traffic,
  part: TrafficPart,
  countedByHost: ReadonlySet<string>,
  at: Date,
): MetricPointInput[] {
  const base = {
    at,
    project_id: part.project_id,
    resource_id: traffic.preview_id ?? traffic.application_id,
    part_id: part.process_id ?? '',
    samples: 0,
  };
  const totals: Record<string, number> = { requests: traffic.requests };
  for (const [digit, count] of Object.entries(traffic.responses)) totals[`responses_${digit}`] = count;
  if (traffic.instance_id === null || !countedByHost.has(traffic.instance_id))
    Object.assign(totals, { network_in_bytes: traffic.received_bytes, network_out_bytes: traffic.sent_bytes });
  const points: MetricPointInput[] = Object.entries(totals)
    .filter(([, total]) => total > 0)
    .map(([metric, total]) => ({ ...base, metric, total }));
  const measured = traffic.latency.reduce((sum, count) => sum + count, 0);
  if (measured) points.push({ ...base, metric: RESPONSE_TIME, total: measured, buckets: traffic.latency });
  return points;
}
