// The directories of buckets. The rows of objects say which files there should be in them.
import { lstat, mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import { syncDirectory } from '../../files';
import { asDriverErrors, checkpoint, type Desired, type Observation } from '../../driver';
import type { BucketDriver, BucketObserved, BucketSpec } from '../../object_storage';
import { removeTree } from '../../remove_tree';

const NAME = 'embedded';
const BUCKET = /^bkt_[0-9a-z]{26}$/;
const NOTHING: BucketObserved = { usage: null, days: [] };

type Bucket = Desired<BucketSpec>;

/** @param directory of all objects, absolute */
export function bucketDirectories(directory: string): BucketDriver {
  const place = (id: string): string => path.join(directory, id);
  return {
    name: NAME,
    measureMs: null,
    appliesLifecycle: false,
    async fingerprint() {
      const failure = await mkdir(directory, { recursive: true, mode: 0o700 }).then(
        () => null,
        (error: NodeJS.ErrnoException) => error.code ?? 'error',
      );
      const reason = failure && `The directory of the objects cannot be used (${failure}).`;
      return { healthy: !reason, reason, facts: {} };
    },
    observe: (r) => asDriverErrors(() => observe(place(r.id))),
    ensure: (r, _obs, ctx) =>
      asDriverErrors(async () => {
        checkpoint(ctx);
        await mkdir(place(r.id), { recursive: true, mode: 0o700 });
        await syncDirectory(directory);
        return { ref: { driver: NAME, name: r.id } };
      }),
    remove: (r: Bucket, _obs, ctx) =>
      asDriverErrors(() => {
        checkpoint(ctx);
        return removeTree(place(r.id));
      }),
    async *list() {
      const names = await readdir(directory).catch(() => []);
      for (const name of names) if (BUCKET.test(name)) yield { ref: { driver: NAME, name }, owner_id: name };
    },
  };
}

async function observe(directory: string): Promise<Observation<BucketObserved>> {
  const found = await lstat(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (!found) return { state: 'absent' };
  if (!found.isDirectory()) return { state: 'foreign', detail: 'Something else has the name of the directory.' };
  return { state: 'present', upToDate: true, observed: NOTHING };
}
