// Metrics of a CDN zone: its parts are its custom domains, and '' for its own host name.
import type { Context } from '../../../core/context';
import { cdnZoneMetrics } from '../../../core/log/metrics';
import { named } from '../../../db/statement';
import { CdnZone } from '../cdn_zone';
import { metricSeries, type Metrics } from '../../applications/metric_point/series';
import type { MetricsArguments } from '../../applications/metric_point/span';

const DOMAINS = named('select id, hostname from cdn_domains where cdn_zone_id = $1 and deleted_at is null order by id');

interface CdnMetricsArguments extends MetricsArguments {
  id: string;
  metrics?: readonly string[] | null;
  domain_id?: string | null;
}

/** @throws not_found, invalid_query_parameter */
export async function metricsOfCdnZone(
  ctx: Context,
  { id, metrics, domain_id, ...span }: CdnMetricsArguments,
): Promise<Metrics> {
  const zone = await CdnZone.get(ctx, id);
  const domains = await ctx.sql.query<{ id: string; hostname: string }>(DOMAINS, [zone.id]);
  const question = {
    resource_id: zone.id,
    definitions: cdnZoneMetrics,
    metrics: metrics?.length ? [...new Set(metrics)] : Object.keys(cdnZoneMetrics),
    parts: domains.map((domain) => ({
      id: domain.id,
      labels: [
        { name: 'domain_id', value: domain.id },
        { name: 'hostname', value: domain.hostname },
      ],
      traffic: false,
    })),
    gone: 'domain_id',
    only: domain_id ?? null,
  };
  return metricSeries(ctx, question, span);
}
