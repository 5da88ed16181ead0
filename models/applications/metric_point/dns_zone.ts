// Metrics of a DNS zone: one series per queried record type.
import type { Context } from '../../../core/context';
import { dnsZoneMetrics } from '../../../core/log/metrics';
import { DnsZone } from '../../dns/dns_zone';
import { metricSeries, type Metrics } from './series';
import type { MetricsArguments } from './span';

interface DnsZoneMetricsArguments extends MetricsArguments {
  id: string;
  metrics?: readonly string[] | null;
}

/** @throws not_found, invalid_query_parameter */
export async function metricsOfDnsZone(
  ctx: Context,
  { id, metrics, ...span }: DnsZoneMetricsArguments,
): Promise<Metrics> {
  const zone = await DnsZone.get(ctx, id);
  const names = metrics?.length ? [...new Set(metrics)] : Object.keys(dnsZoneMetrics);
  const question = {
    resource_id: zone.id,
    definitions: dnsZoneMetrics,
    metrics: names,
    parts: [],
    gone: 'record_type',
    only: null,
  };
  return metricSeries(ctx, question, span);
}
