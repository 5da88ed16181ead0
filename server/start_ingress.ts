// An ingress without the jobs: it routes by the same rows, has the same certificates, answers the same challenges of
// certificate authorities and serves the same CDN zones as that of the worker. So it needs the addresses of pods, which
// all machines reach.
import { setTimeout as sleep } from 'node:timers/promises';
import { StartupError } from '../core/startup_error';
import { limits } from '../core/limits';
import { openLogBudget } from '../core/log/log_budget';
import type { IngressDriver } from '../engines/ingress/ingress';
import { startCdnCounting } from './agents/cdn/cdn';
import { startCdnFeed } from './agents/cdn/cdn_feed';
import { openCacheLease } from './agents/cdn/cdn_lease';
import { openFurtherIngress } from './agents/ingress';
import { startReporting } from './agents/reported_traffic';
import { startRouteFeed } from './agents/route_feed';
import { withPodsOnly } from './agents/route_locations';
import { openRouterLines } from './agents/sampler';
import type { Platform } from './platform/platform';
import { startProcessReport } from './platform/process_report';

/** A cluster that is away is not waited for: what the rows of the worker confirm is served. */
const KNOWN_MS = 5_000;

interface Ingress {
  ports: IngressDriver['ports'];
  /** Lets open requests finish. */
  close(): Promise<void>;
}

/**
 * Listens on INGRESS_PORT and INGRESS_TLS_PORT; resolves when it has its routes.
 * @throws StartupError where a port is taken, or instances are on a host
 */
export async function startIngress(platform: Platform): Promise<Ingress> {
  const { config, database, databaseUrl, log } = platform;
  if (config.workloads !== 'kubernetes')
    throw new StartupError(
      'npm run ingress needs WORKLOADS=kubernetes: instances on a host are reached by the ingress of that host alone.',
    );
  const opened: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const step of opened.splice(0).reverse()) await step();
  };
  try {
    const lines = openRouterLines({ database, log, budget: openLogBudget(limits.logBytesPerSecond) });
    opened.push(() => lines.close());
    const lease = openCacheLease({ database, log });
    const { ingress, cdn, known } = await openFurtherIngress(platform, lines, lease, opened);
    const reporting = startReporting({ database, ingress, log });
    opened.push(() => reporting.close());
    const cdnCounting = startCdnCounting(cdn, database, log);
    opened.push(() => cdnCounting.finish());
    const { secrets } = platform;
    const ingressPort = ingress.ports.http;
    // Before the routes: a host name without a route is unknown once these are read.
    const zones = await startCdnFeed({ config, secrets, database, databaseUrl, cdn, lease, ingressPort, log });
    opened.push(() => zones.close());
    // With its routes it is ready, for load balancers too.
    await Promise.race([known, sleep(KNOWN_MS, undefined, { ref: false })]);
    const pods = withPodsOnly(ingress);
    const feed = await startRouteFeed({ database, databaseUrl, ingress: pods, onCluster: true, log });
    opened.push(() => feed.close());
    opened.push(startProcessReport(platform, 'ingress'));
    return { ports: ingress.ports, close };
  } catch (error) {
    await close();
    throw error;
  }
}
