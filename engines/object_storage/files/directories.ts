// Directories of buckets. Which files belong in them is recorded in the rows of objects.
import { lstat, mkdir, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import {
  asDriverErrors,
  checkpoint,
  DriverError,
  type Desired,
  type Fingerprint,
  type Observation,
} from '../../../core/driver';
import { syncDirectory, replaceFileDurably } from '../../../core/files';
import type { BucketDriver, BucketObserved, BucketSpec } from '../object_storage';
import { removeTree } from '../../../core/process/remove_tree';

const NAME = 'embedded';
const BUCKET = /^[a-z]{3}_[0-9a-z]+$/;
/** Identifies the bucket for an operator who has only the disk. */
const MARK = 'bucket.json';
const NOTHING: BucketObserved = { usage: null, days: [] };

type Bucket = Desired<BucketSpec>;

/** @param directory of all objects, absolute */
export function bucketDirectories(directory: string): BucketDriver {
  const place = (id: string): string => path.join(directory, id);
  return {
    name: NAME,
    measureMs: null,
    appliesLifecycle: false,
    fingerprint: () => fingerprint(directory),
    observe: (r, ctx) =>
      asDriverErrors(() => {
        checkpoint(ctx);
        return observe(place(r.id), r);
      }),
    ensure: (r, _obs, ctx) =>
      asDriverErrors(async () => {
        checkpoint(ctx);
        if ((await observe(place(r.id), r)).state === 'foreign') throw foreign();
        await mkdir(place(r.id), { recursive: true, mode: 0o700 });
        await syncDirectory(directory);
        await writeMark(place(r.id), r);
        return { ref: { driver: NAME, name: r.id } };
      }),
    remove: (r: Bucket, _obs, ctx) =>
      asDriverErrors(async () => {
        checkpoint(ctx);
        if ((await observe(place(r.id), r)).state === 'present') await removeTree(place(r.id));
      }),
    async *list(ctx) {
      checkpoint(ctx);
      for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => []))
        if (entry.isDirectory() && BUCKET.test(entry.name))
          yield { ref: { driver: NAME, name: entry.name }, owner_id: entry.name };
    },
  };
}

async function fingerprint(directory: string): Promise<Fingerprint> {
  const failure = await mkdir(directory, { recursive: true, mode: 0o700 }).then(
    () => null,
    (error: NodeJS.ErrnoException) => error.code ?? 'error',
  );
  const reason = failure && `The directory of the objects cannot be used (${failure}).`;
  return { healthy: !reason, reason, facts: {} };
}

async function observe(directory: string, r: Bucket): Promise<Observation<BucketObserved>> {
  const found = await lstat(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (!found) return { state: 'absent' };
  if (!found.isDirectory()) return { state: 'foreign', detail: 'Something else has the name of the directory.' };
  const mark = await readFile(path.join(directory, MARK), 'utf8').catch(() => null);
  return { state: 'present', upToDate: mark === markOf(r), observed: NOTHING };
}

/** Settings of the bucket, without permissions and secrets. */
function markOf({ id, spec }: Bucket): string {
  const { name, access, versioning, quota_bytes, website, cors, lifecycle } = spec;
  return JSON.stringify({ id, name, access, versioning, quota_bytes, website, cors, lifecycle }, null, 2);
}

async function writeMark(directory: string, r: Bucket): Promise<void> {
  await replaceFileDurably(path.join(directory, MARK), markOf(r));
}

function foreign(): DriverError {
  return new DriverError('conflict', 'Something else has the name of the directory of the bucket.');
}
