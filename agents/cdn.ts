// The cache of CDN zones of this host, and its counters as metrics.
import type { Config } from '../core/config';
import type { Logger } from '../core/log';
import type { ControlDatabase } from '../db/control_database';
import type { CdnDriver, CdnTraffic } from '../drivers/cdn';
import { openEmbeddedCdn, type EmbeddedCdn } from '../drivers/cdn/embedded/driver';
import type { Outbound } from '../drivers/outbound';
import { projectsOfZones } from '../models/cdn_zone/work';
import { addMetricPoints, type MetricPointInput } from '../models/metric_point';

const BYTES_PER_GB = 1_000_000_000;
const BYTES_PER_MB = 1_000_000;
const COUNT_EVERY_MS = 10_000;

export function openCdn({ config, outbound, log }: { config: Config; outbound: Outbound; log: Logger }): EmbeddedCdn {
  return openEmbeddedCdn({
    ...cdnLimits(config),
    outbound,
    log: (message, error) => log.warn({ err: error }, message),
  });
}

/** Where the cache is, and how large it may get. */
export function cdnLimits({ cdnDir, cdnSizeGb, cdnObjectMb }: Config): {
  directory: string;
  bytesMax: number;
  objectBytesMax: number;
} {
  return { directory: cdnDir, bytesMax: cdnSizeGb * BYTES_PER_GB, objectBytesMax: cdnObjectMb * BYTES_PER_MB };
}

/** Writes the counters of the cache every ten seconds, not with each request. */
export function startCdnCounting(driver: CdnDriver, database: ControlDatabase, log: Logger): { stop(): Promise<void> } {
  let running = Promise.resolve();
  const count = (): void => {
    running = running
      .then(() => storeTraffic(driver.takeTraffic(), database))
      .catch((error: unknown) => log.warn({ err: error }, 'counters of the CDN could not be stored'));
  };
  const timer = setInterval(count, COUNT_EVERY_MS);
  return {
    async stop() {
      clearInterval(timer);
      count();
      await running;
    },
  };
}

async function storeTraffic(traffic: readonly CdnTraffic[], database: ControlDatabase): Promise<void> {
  if (!traffic.length) return;
  const projects = await projectsOfZones(database, [...new Set(traffic.map(({ zone_id }) => zone_id))]);
  const at = new Date();
  const points = traffic.flatMap((counted) => {
    const project_id = projects.get(counted.zone_id);
    return project_id === undefined ? [] : pointsOf(counted, project_id, at);
  });
  if (points.length) await addMetricPoints(database, points);
}

function pointsOf(counted: CdnTraffic, project_id: string, at: Date): MetricPointInput[] {
  const base = { at, project_id, resource_id: counted.zone_id, part_id: counted.domain_id };
  const sums = {
    requests: counted.requests,
    bandwidth_bytes: counted.bytes,
    origin_requests: counted.origin_requests,
    ...Object.fromEntries(Object.entries(counted.responses).map(([family, total]) => [`responses_${family}`, total])),
  };
  const points = Object.entries(sums).map(([metric, total]) => ({ ...base, metric, samples: 0, total }));
  const ratio = { ...base, metric: 'cache_hit_ratio', samples: counted.requests, total: counted.hits * 100 };
  return [...points.filter(({ total }) => total > 0), ...(counted.requests ? [ratio] : [])];
}
