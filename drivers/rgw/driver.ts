// A Ceph RADOS Gateway as object storage engine: buckets and keys are stored in the gateway only.
import type { ObjectStorage } from '../../engines/object_storage';
import { openRgwApi, type RgwOptions } from './api';
import { rgwBuckets } from './buckets';
import { rgwKeys } from './keys';
import { listRgwObjects } from './objects';

export function openRgw(options: RgwOptions): ObjectStorage {
  const api = openRgwApi(options);
  return {
    buckets: openRgwBuckets(options),
    keys: openRgwKeys(options),
    list: (bucket, question, ctx) => listRgwObjects(api, bucket, question, ctx),
  };
}

export const openRgwBuckets = (options: RgwOptions) => rgwBuckets(openRgwApi(options), options);
export const openRgwKeys = (options: RgwOptions) => rgwKeys(openRgwApi(options), options);
