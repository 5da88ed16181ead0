// Where buckets are reached, and whether this installation has object storage at all.
import type { Config } from '../../core/config';
import { problem } from '../../core/errors';
import type { BucketWebsite } from '../../schema/types';

/** @throws engine_unavailable, with what the operator has to do */
export function requireObjectStorage(config: Config): void {
  const missing = missingSetting(config);
  if (missing) throw problem('engine_unavailable', `This installation has no object storage: ${missing}`);
}

function missingSetting({ s3Engine, s3Port, rgwUrl, rgwAccessKey, rgwSecretKey }: Config): string | null {
  if (s3Engine === 'embedded') return s3Port === 0 ? 'the operator has set `S3_PORT` to `0`.' : null;
  return rgwUrl && rgwAccessKey && rgwSecretKey
    ? null
    : 'with `S3_ENGINE=ceph` the operator has to set `RGW_URL`, `RGW_ACCESS_KEY` and `RGW_SECRET_KEY`.';
}

/** URL of the S3 endpoint, without a slash at its end. */
export function endpointOf({ s3Engine, s3Url, s3Port, rgwUrl }: Config): string {
  if (s3Url) return s3Url;
  return s3Engine === 'ceph' && rgwUrl ? rgwUrl : `http://127.0.0.1:${s3Port}`;
}

/** Where everybody may read: the website, else the objects; null while the bucket is private. */
export function publicUrlOf(
  config: Config,
  { name, access, website }: { name: string; access: string; website: BucketWebsite | null },
): string | null {
  if (access !== 'public_read') return null;
  const endpoint = endpointOf(config);
  if (!website || config.s3Engine === 'ceph') return `${endpoint}/${name}`;
  const { protocol, port } = new URL(endpoint);
  return `${protocol}//${name}.${config.s3WebsiteDomain}${port ? `:${port}` : ''}`;
}
