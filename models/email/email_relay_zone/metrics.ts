// Metrics of a relay zone: its parts are its sending domains.
import type { Context } from '../../../core/context';
import { emailMetrics } from '../../../core/log/metrics';
import { named } from '../../../db/statement';
import { EmailRelayZone } from '../email_relay_zone';
import { metricSeries, type Metrics } from '../../applications/metric_point/series';
import type { MetricsArguments } from '../../applications/metric_point/span';

const DOMAINS = named('select id, name from email_domains where project_id = $1 and id = any($2) order by id');

interface EmailMetricsArguments extends MetricsArguments {
  id: string;
  metrics?: readonly string[] | null;
  email_domain_id?: string | null;
}

/** @throws not_found, invalid_query_parameter */
export async function metricsOfEmailRelayZone(
  ctx: Context,
  { id, metrics, email_domain_id, ...span }: EmailMetricsArguments,
): Promise<Metrics> {
  const zone = await EmailRelayZone.get(ctx, id);
  const values = [zone.project_id, zone.email_domain_ids];
  const domains = await ctx.sql.query<{ id: string; name: string }>(DOMAINS, values);
  const question = {
    resource_id: zone.id,
    definitions: emailMetrics,
    metrics: metrics?.length ? [...new Set(metrics)] : Object.keys(emailMetrics),
    parts: domains.map((domain) => ({
      id: domain.id,
      labels: [
        { name: 'email_domain_id', value: domain.id },
        { name: 'domain', value: domain.name },
      ],
      traffic: false,
    })),
    gone: 'email_domain_id',
    only: email_domain_id ?? null,
  };
  return metricSeries(ctx, question, span);
}
