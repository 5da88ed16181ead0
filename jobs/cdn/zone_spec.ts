// What a cache serves of a CDN zone, by its rows.
import { isIPv6 } from 'node:net';
import type { Config } from '../../core/config';
import { DriverError } from '../../core/driver';
import type { SecretBox } from '../../core/secrets';
import type { CdnCacheRules, CdnOriginSpec, CdnZoneSpec } from '../../engines/cdn';
import type { ServedZone } from '../../models/cdn/cdn_zone/job_queries';
import { endpointOf } from '../../models/object_storage/bucket/endpoint';
import { ownerCredentials } from '../../models/object_storage/bucket/presign';

interface Parts {
  config: Config;
  secrets: SecretBox;
  /** Port of the ingress that has the cache: applications are reached through it. */
  ingressPort: number;
}

const ANY_ADDRESS = new Set(['0.0.0.0', '::']);
const GONE_ORIGIN = 'The origin of the zone was deleted. Set another origin.';

/** @throws DriverError invalid where the origin has gone */
export function zoneSpecOf(zone: ServedZone, parts: Parts): CdnZoneSpec {
  const { hosts, hostname, enabled, cache, compression, force_https } = zone;
  return {
    hosts: [{ host: hostname, domain_id: '' }, ...hosts],
    origin: originOf(zone, parts),
    ...{ enabled, cache: cache as CdnCacheRules, compression, force_https },
  };
}

function originOf({ origin, application_host, bucket }: ServedZone, parts: Parts): CdnOriginSpec {
  const { type, url, bucket_id, host_header } = origin;
  if (type === 'url' && url) return { url, host_header: host_header ?? new URL(url).host, is_internal: false };
  if (type === 'application' && application_host)
    return { url: ingressUrl(parts), host_header: host_header ?? application_host, is_internal: true };
  if (!bucket_id || !bucket) throw new DriverError('invalid', GONE_ORIGIN);
  const endpoint = endpointOf(parts.config);
  const credentials = ownerCredentials(parts.secrets, bucket_id);
  // The signature holds the name of the endpoint.
  return { url: endpoint, host_header: new URL(endpoint).host, is_internal: true, bucket: { ...bucket, credentials } };
}

function ingressUrl({ config: { ingressListen: listen }, ingressPort }: Parts): string {
  const host = ANY_ADDRESS.has(listen) ? '127.0.0.1' : listen;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${ingressPort}`;
}
