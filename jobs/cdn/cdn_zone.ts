// CDN zones: what the cache of the host serves is what their rows say.
import { isIPv6 } from 'node:net';
import type { CdnCacheRules, CdnOriginSpec, CdnZoneSpec } from '../../engines/cdn';
import { DriverError } from '../../core/driver';
import type { Outbound } from '../../core/outbound';
import { spreadRows } from '../../db/loop_rows';
import { CdnZone } from '../../models/cdn/cdn_zone';
import { endpointOf } from '../../models/object_storage/bucket/endpoint';
import { ownerCredentials } from '../../models/object_storage/bucket/presign';
import { activeHosts, applicationHost, bucketOf, forgetOldPurges, hasDomains } from '../../models/cdn/cdn_zone/work';
import {
  gone,
  jittered,
  progressing,
  requireHost,
  settled,
  type Job,
  type JobContext,
  type LoopRow,
  type Outcome,
} from '../job';

type ZoneRow = LoopRow &
  Pick<CdnZone, 'project_id' | 'hostname' | 'origin' | 'enabled' | 'cache' | 'compression' | 'force_https'>;

const RECHECK_MS = 60 * 60_000;
const WAIT_FOR_DOMAINS_MS = 500;
const ANY_ADDRESS = new Set(['0.0.0.0', '::']);
const GONE_ORIGIN = 'The origin of the zone was deleted. Set another origin.';

export const job: Job<ZoneRow> = {
  table: CdnZone.table,
  host: true,
  states: CdnZone.states,
  watchFailedMs: 60_000,
  // The cache of a new process knows no zones.
  prepare: async (sql) => void (await spreadRows(sql, { table: CdnZone.table, where: 'true', values: [] }, 0)),
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : reconcile(row, ctx)),
};

async function reconcile(row: ZoneRow, ctx: JobContext): Promise<Outcome> {
  const { cdn, outbound } = requireHost(ctx);
  const spec = await specOf(row, ctx);
  await cdn.ensureZone(row.id, spec, ctx);
  if (!spec.origin.is_internal) await requireAllowedOrigin(outbound, spec.origin.url);
  await forgetOldPurges(ctx.sql, row.id);
  const columns = { driver: cdn.name, ref: { driver: cdn.name, name: row.id }, status_reason: null };
  return settled({ ...columns, status: row.enabled ? 'active' : 'disabled' }, jittered(RECHECK_MS));
}

/** Where its name leads is judged again at each connection: this is for the one who reads the state of the zone. */
async function requireAllowedOrigin(outbound: Outbound, url: string): Promise<void> {
  try {
    await outbound.requireAllowedName(new URL(url).hostname);
  } catch (error) {
    throw new DriverError('invalid', `The origin cannot be used: ${(error as Error).message}`);
  }
}

async function specOf(row: ZoneRow, ctx: JobContext): Promise<CdnZoneSpec> {
  const { enabled, cache, compression, force_https, hostname } = row;
  const own = { host: hostname, domain_id: '' };
  return {
    hosts: [own, ...(await activeHosts(ctx.sql, row.id))],
    origin: await originOf(row, ctx),
    ...{ enabled, cache: cache as CdnCacheRules, compression, force_https },
  };
}

/** @throws DriverError where the origin has gone */
async function originOf({ origin, project_id }: ZoneRow, ctx: JobContext): Promise<CdnOriginSpec> {
  const { type, url, application_id, bucket_id, host_header } = origin;
  if (type === 'url' && url) return { url, host_header: host_header ?? new URL(url).host, is_internal: false };
  if (type === 'application' && application_id) {
    const host = await applicationHost(ctx.sql, application_id, project_id);
    if (!host) throw new DriverError('invalid', GONE_ORIGIN);
    return { url: ingressUrl(ctx), host_header: host_header ?? host, is_internal: true };
  }
  const bucket = bucket_id ? await bucketOf(ctx.sql, bucket_id, project_id) : null;
  if (!bucket_id || !bucket) throw new DriverError('invalid', GONE_ORIGIN);
  const endpoint = endpointOf(ctx.config);
  const credentials = ownerCredentials(ctx.secrets, bucket_id);
  // The signature holds the name of the endpoint.
  return { url: endpoint, host_header: new URL(endpoint).host, is_internal: true, bucket: { ...bucket, credentials } };
}

/** Where this host reaches its own ingress. */
function ingressUrl(ctx: JobContext): string {
  const { ingressListen: listen } = ctx.config;
  const host = ANY_ADDRESS.has(listen) ? '127.0.0.1' : listen;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${requireHost(ctx).ingress.ports.http}`;
}

async function tearDown(row: ZoneRow, ctx: JobContext): Promise<Outcome> {
  await requireHost(ctx).cdn.removeZone(row.id, ctx);
  return (await hasDomains(ctx.sql, row.id)) ? progressing(WAIT_FOR_DOMAINS_MS) : gone;
}
