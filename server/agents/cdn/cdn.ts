// The caches of CDN zones, that of the host and those of further ingresses, and their counters as metrics.
import { readdir, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../../core/config';
import type { Logger } from '../../../core/log/log';
import { repeatWork, type RepeatedWork } from '../../../core/process/background';
import type { SecretBox } from '../../../core/secrets';
import type { ControlDatabase } from '../../../db/control_database';
import {
  type CdnDriver,
  type CdnTraffic,
  type CdnEngine,
  type StoredZones,
  openEmbeddedCdn,
  type EmbeddedCdnLimits,
  type EmbeddedCdnOptions,
} from '../../../engines/cdn';
import type { Outbound } from '../../../core/outbound';
import { projectsOfZones } from '../../../models/cdn/cdn_zone/job_queries';
import { addMetricPoints, type MetricPointInput } from '../../../models/applications/metric_point';
import type { CacheLease } from './cdn_lease';
import { openStoredZones } from './stored_zones';

const BYTES_PER_GB = 1_000_000_000;
const BYTES_PER_MB = 1_000_000;
const COUNT_EVERY_MS = 10_000;
/** Of small objects that were requested recently. */
const MEMORY_BYTES_MAX = 64 * BYTES_PER_MB;
/** Larger objects are passed through. */
const OBJECT_BYTES_MAX = 1_024 * BYTES_PER_MB;
const OBJECTS_DIRECTORY = 'objects';
const ZONES_FILE = 'zones';
const FURTHER_DIRECTORY = 'ingresses';

interface Parts {
  config: Config;
  secrets: SecretBox;
  outbound: Outbound;
  log: Logger;
}

export function openCdn(parts: Parts): CdnEngine {
  return openEmbeddedCdn({ ...cdnLimits(parts.config), ...sharedOptions(parts), stored: storedZonesOf(parts) });
}

interface FurtherCdn {
  engine: CdnEngine;
  /** Removes what earlier runs have left. To be called when this run has the port, which tells that they have ended. */
  removeLeftovers(): void;
  /** Also removes the directory. */
  close(): Promise<void>;
}

/** The cache of a further ingress, which begins empty: nobody waited for it with purges before. */
export function openFurtherCdn(parts: Parts, lease: CacheLease): FurtherCdn {
  const { config, log } = parts;
  const parent = join(config.cdnDir, FURTHER_DIRECTORY);
  // Several machines and ingresses may have one CDN_DIR.
  const prefix = `${hostname()}_${config.ingressListen}_${config.ingressPort}_`;
  const own = `${prefix}${lease.id}`;
  const directory = join(parent, own);
  const limits = { ...cdnLimits(config), directory };
  const engine = openEmbeddedCdn({ ...limits, ...sharedOptions(parts), isCurrent: lease.isCurrent });
  const removeLeftovers = async (): Promise<void> => {
    // With a free port, others may be serving.
    if (config.ingressPort === 0) return;
    for (const name of await readdir(parent))
      if (name.startsWith(prefix) && name !== own) await rm(join(parent, name), { recursive: true, force: true });
  };
  return {
    engine,
    removeLeftovers: () =>
      void removeLeftovers().catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT')
          log.warn({ err: error }, 'Objects that an earlier run cached could not be removed.');
      }),
    async close() {
      await engine.close();
      await rm(directory, { recursive: true, force: true }).catch(() => undefined);
    },
  };
}

function sharedOptions({ secrets, outbound, log }: Parts): Pick<EmbeddedCdnOptions, 'outbound' | 'token' | 'log'> {
  return {
    outbound,
    token: edgeToken(secrets),
    log: (message: string, error: unknown): void => log.warn({ err: error }, message),
  };
}

/** By which an ingress knows requests of CDN zones, after it was replaced too. */
export function edgeToken(secrets: SecretBox): string {
  return secrets.hmac('token', 'cdn edge');
}

export function storedZonesOf({ config, secrets, log }: Omit<Parts, 'outbound'>): StoredZones {
  return openStoredZones({ file: join(config.cdnDir, ZONES_FILE), secrets, log });
}

/** Where the cache of the host is, and how large it may get. */
export function cdnLimits({ cdnDir, cdnSizeGb, cdnObjects }: Config): EmbeddedCdnLimits {
  return {
    directory: join(cdnDir, OBJECTS_DIRECTORY),
    bytesMax: cdnSizeGb * BYTES_PER_GB,
    objectsMax: cdnObjects,
    memoryBytesMax: MEMORY_BYTES_MAX,
    objectBytesMax: OBJECT_BYTES_MAX,
  };
}

/** Writes the counters of the cache every ten seconds, not with each request. */
export function startCdnCounting(driver: CdnDriver, database: ControlDatabase, log: Logger): RepeatedWork {
  const failure = 'counters of the CDN could not be stored';
  return repeatWork({ name: 'cdn_traffic', everyMs: COUNT_EVERY_MS, log, failure }, () =>
    storeTraffic(driver.takeTraffic(), database),
  );
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
