// Where buckets are reached, and whether this installation has object storage at all.
import type { Config } from '../../../core/config';
import { problem } from '../../../core/errors';
import type { BucketWebsite } from '../../../schema/types';

/** @throws engine_unavailable, with what the operator has to do */
export function requireObjectStorage({ s3Port, rgwUrl }: Config): void {
  if (s3Port !== 0 || rgwUrl !== null) return;
  throw problem(
    'engine_unavailable',
    'This installation has no object storage: the operator has set `S3_PORT` to `0`.',
  );
}

/** The Ceph gateway serves websites only with host names that it manages. @throws engine_unavailable */
export function requireWebsites({ rgwUrl }: Config): void {
  if (rgwUrl === null) return;
  throw problem(
    'engine_unavailable',
    'The buckets of this installation are in an object gateway (`RGW_URL`), which serves no websites.',
  );
}

/** URL of the S3 endpoint, without a slash at its end. */
export function endpointOf({ s3Url, s3Port, rgwUrl }: Config): string {
  return s3Url ?? rgwUrl ?? `http://127.0.0.1:${s3Port}`;
}

/** The origin at which browsers read and write objects (RFC 6454); null where there is no object storage. */
export function objectStorageOrigin(config: Config): string | null {
  return config.s3Port === 0 && config.rgwUrl === null ? null : new URL(endpointOf(config)).origin;
}

/** Where everybody may read: the website, else the objects; null while the bucket is private. */
export function publicUrlOf(
  config: Config,
  { name, access, website }: { name: string; access: string; website: BucketWebsite | null },
): string | null {
  if (access !== 'public_read') return null;
  const endpoint = endpointOf(config);
  if (!website) return `${endpoint}/${name}`;
  const { protocol, port } = new URL(endpoint);
  return `${protocol}//${name}.${config.s3WebsiteDomain}${port ? `:${port}` : ''}`;
}
