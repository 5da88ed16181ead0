// Opens the object storage engine of this installation.
import type { Config } from '../../core/config';
import { type ObjectStorage, bucketDirectories } from '../../engines/object_storage';
import { openRgw } from '../rgw/driver';

type Settings = Pick<Config, 's3Port' | 's3Dir' | 'rgwUrl' | 'rgwAccessKey' | 'rgwSecretKey' | 'rgwUserPrefix'>;

/** @returns null where object storage is disabled */
export function openObjectStorage(config: Settings): ObjectStorage | null {
  const { rgwUrl: url, rgwAccessKey, rgwSecretKey, rgwUserPrefix: userPrefix } = config;
  if (url !== null)
    return openRgw({ url, userPrefix, accessKeyId: rgwAccessKey ?? '', secretAccessKey: rgwSecretKey ?? '' });
  if (config.s3Port === 0) return null;
  return { buckets: bucketDirectories(config.s3Dir), keys: null, list: null };
}
