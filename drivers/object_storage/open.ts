// The engine of this installation.
import type { Config } from '../../core/config';
import type { ObjectStorage } from '../object_storage';
import { bucketDirectories } from './embedded/directories';

type Settings = Pick<Config, 's3Port' | 's3Dir'>;

/** @returns null where object storage is switched off */
export function openObjectStorage(config: Settings): ObjectStorage | null {
  if (config.s3Port === 0) return null;
  return { buckets: bucketDirectories(config.s3Dir), keys: null };
}
