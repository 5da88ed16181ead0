// The cache of CDN zones of this host, and its counters as metrics.
import { join } from 'node:path';
import type { Config } from '../../core/config';
import type { Logger } from '../../core/log/log';
import { repeatWork, type RepeatedWork } from '../../core/process/repeated_work';
import type { SecretBox } from '../../core/secrets';
import { StartupError } from '../../core/startup_error';
import type { ControlDatabase } from '../../db/control_database';
import {
  type CdnDriver,
  type CdnTraffic,
  type CdnEngine,
  type StoredZones,
  openEmbeddedCdn,
  type EmbeddedCdnLimits,
} from '../../engines/cdn';
import { openVarnish } from '../../drivers/varnish/driver';
import type { Outbound } from '../../core/outbound';
import { allHosts, projectsOfZones } from '../../models/cdn/cdn_zone/work';
import { addMetricPoints, type MetricPointInput } from '../../models/applications/metric_point';
import { openStoredZones } from './stored_zones';

const BYTES_PER_GB = 1_000_000_000;
const BYTES_PER_MB = 1_000_000;
const COUNT_EVERY_MS = 10_000;
const READ_HOSTS_EVERY_MS = 30_000;
const GATEWAY_PORT = 6079;
const OBJECTS_DIRECTORY = 'objects';
const ZONES_FILE = 'zones';

interface Parts {
  config: Config;
  secrets: SecretBox;
  outbound: Outbound;
  log: Logger;
}

/** @throws StartupError where Varnish is set and can't be used from here */
export async function openCdn({ config, secrets, outbound, log }: Parts): Promise<CdnEngine> {
  const shared = {
    outbound,
    stored: storedZonesOf({ config, secrets, log }),
    token: edgeToken(secrets),
    log: (message: string, error: unknown): void => log.warn({ err: error }, message),
  };
  if (!config.cdnVarnishNodes.length) return openEmbeddedCdn({ ...cdnLimits(config), ...shared });
  const { objectBytesMax } = cdnLimits(config);
  const { cdnVarnishNodes: nodes, cdnVarnishSecretFile: secretFile } = config;
  if (!secretFile) throw new StartupError('CDN_VARNISH_NODES needs CDN_VARNISH_SECRET_FILE.');
  const [, host = '', port = GATEWAY_PORT] = /^(.+?)(?::(\d+))?$/.exec(config.cdnGateway[0] ?? '') ?? [];
  return openVarnish({
    ...shared,
    objectBytesMax,
    nodes,
    secretFile,
    gateway: { host, port: Number(port), token: secrets.hmac('gateway', 'cdn gateway') },
  }).catch((error: NodeJS.ErrnoException) => {
    throw new StartupError(
      `can't serve CDN zones with Varnish (CDN_GATEWAY, CDN_VARNISH_SECRET_FILE): ${error.code ?? error.message}`,
    );
  });
}

/** By which an ingress knows requests of CDN zones, after it was replaced too. */
export function edgeToken(secrets: SecretBox): string {
  return secrets.hmac('token', 'cdn edge');
}

export function storedZonesOf({ config, secrets, log }: Omit<Parts, 'outbound'>): StoredZones {
  return openStoredZones({ file: join(config.cdnDir, ZONES_FILE), secrets, log });
}

/** Where the embedded cache is, and how large it may get. */
export function cdnLimits({ cdnDir, cdnSizeGb, cdnObjects, cdnMemoryMb, cdnObjectMb }: Config): EmbeddedCdnLimits {
  return {
    directory: join(cdnDir, OBJECTS_DIRECTORY),
    bytesMax: cdnSizeGb * BYTES_PER_GB,
    objectsMax: cdnObjects,
    memoryBytesMax: cdnMemoryMb * BYTES_PER_MB,
    objectBytesMax: cdnObjectMb * BYTES_PER_MB,
  };
}

/** Writes the counters of the cache every ten seconds, not with each request. */
export function startCdnCounting(driver: CdnDriver, database: ControlDatabase, log: Logger): RepeatedWork {
  const failure = 'counters of the CDN could not be stored';
  return repeatWork({ everyMs: COUNT_EVERY_MS, log, failure }, () => storeTraffic(driver.takeTraffic(), database));
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

interface CdnHosts {
  has(host: string): boolean;
  close(): Promise<void>;
}

/**
 * Host names of CDN zones, for ingresses that do not serve them: caches are purged at the worker's ingress alone.
 * Resolves when they have been read once. Where the database is away later, the last ones count.
 */
export async function openCdnHosts({ database, log }: { database: ControlDatabase; log: Logger }): Promise<CdnHosts> {
  let hosts = new Set(await allHosts(database));
  const failure = 'The host names of CDN zones could not be read.';
  const reading = repeatWork({ everyMs: READ_HOSTS_EVERY_MS, log, failure }, async () => {
    hosts = new Set(await allHosts(database));
  });
  return { has: (host) => hosts.has(host), close: () => reading.stop() };
}
