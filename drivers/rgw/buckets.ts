// Buckets at the gateway. Each is owned by its own user, whose key only the platform has, so that the user's quota is
// the bucket's quota, and usage is counted separately.
import { checkpoint, DriverError, type Desired, type DriverContext, type Observation } from '../../core/driver';
import { type BucketDriver, type BucketObserved, type BucketSpec, S3Error } from '../../engines/object_storage';
import { rgwError, type RgwApi, type RgwOptions } from './api';
import { rgwSettings, type Setting } from './documents';
import { awsPolicyOf } from './policy';
import { readRgwTraffic } from './usage';
import {
  DRIVER_NAME,
  ensureRgwUser,
  findRgwUser,
  foreignRgwUser,
  isRgwUserUpToDate,
  listRgwUsers,
  rgwUserMark,
  rgwFingerprint,
  rgwUserId,
  type DesiredUser,
  type RgwUser,
} from './users';

/** Interval of drift detection and usage measurement. */
const MEASURE_MS = 60_000;

type Bucket = Desired<BucketSpec>;

interface RgwBucket {
  owner: string;
  usage: Partial<Record<string, { size: number; num_objects: number }>>;
}

interface Found {
  user: RgwUser | null;
  bucket: RgwBucket | null;
  /** Settings that differ from the desired ones. */
  settings: Setting[];
}

export function rgwBuckets(api: RgwApi, options: RgwOptions): BucketDriver {
  const { userPrefix } = options;
  const look = (r: Bucket, ctx: DriverContext): Promise<Found> => find(api, r, userPrefix, ctx);
  return {
    name: DRIVER_NAME,
    measureMs: MEASURE_MS,
    appliesLifecycle: true,
    fingerprint: (ctx) => rgwFingerprint(api, options.url, userPrefix, ctx),
    async observe(r, ctx) {
      const found = await look(r, ctx);
      return observed(api, r, found, userPrefix, ctx);
    },
    async ensure(r, _obs, ctx) {
      checkpoint(ctx);
      await ensure(api, r, await look(r, ctx), userPrefix, ctx);
      return { ref: { driver: DRIVER_NAME, name: r.id } };
    },
    async remove(r, _obs, ctx) {
      checkpoint(ctx);
      const owner = ownerOf(r, userPrefix);
      const [user, bucket] = await Promise.all([findRgwUser(api, owner.uid, ctx), findBucket(api, r.spec.name, ctx)]);
      if (user === null || user.display_name !== owner.mark) return;
      // In two calls: emptying a large bucket outlasts a step, and goes on with the next one.
      if (bucket?.owner === owner.uid)
        await api.admin('DELETE', 'bucket', { bucket: r.spec.name, 'purge-objects': true }, ctx);
      await api.admin('DELETE', 'user', { uid: owner.uid, 'purge-data': true }, ctx);
    },
    list: (ctx) => listRgwUsers(api, userPrefix, 'bucket', ctx),
  };
}

function ownerOf({ id, spec }: Bucket, prefix: string): DesiredUser {
  return {
    ...{ uid: rgwUserId(prefix, 'bucket', id), mark: rgwUserMark('bucket', id) },
    ...{ credentials: spec.owner, suspended: false, maxBuckets: 1 },
  };
}

async function find(api: RgwApi, r: Bucket, prefix: string, ctx: DriverContext): Promise<Found> {
  const { spec } = r;
  const owner = ownerOf(r, prefix);
  const [user, bucket] = await Promise.all([findRgwUser(api, owner.uid, ctx), findBucket(api, spec.name, ctx)]);
  const userOf = (accessKeyId: string): string | undefined => {
    const key = spec.keys.find(({ access_key_id }) => access_key_id === accessKeyId);
    return key && rgwUserId(prefix, 'key', key.id);
  };
  const all = rgwSettings(spec, awsPolicyOf(spec, owner.uid, userOf));
  if (bucket?.owner !== owner.uid || !user || !isRgwUserUpToDate(user, owner)) return { user, bucket, settings: all };
  const isSet = await Promise.all(
    all.map(async (setting) => {
      const answer = await api.s3(spec.owner, 'GET', `/${spec.name}`, { [setting.name]: '' }, ctx);
      return isUpToDate(setting, answer);
    }),
  );
  return { user, bucket, settings: all.filter((_, index) => !isSet[index]) };
}

function findBucket(api: RgwApi, bucket: string, ctx: DriverContext): Promise<RgwBucket | null> {
  return api.admin<RgwBucket>('GET', 'bucket', { bucket, stats: true }, ctx);
}

/** Foreign settings may be in a format that the platform does not support. */
function isUpToDate(setting: Setting, answer: Parameters<Setting['isUpToDate']>[0]): boolean {
  try {
    return setting.isUpToDate(answer);
  } catch (error) {
    if (error instanceof S3Error) return false;
    throw error;
  }
}

async function observed(
  api: RgwApi,
  r: Bucket,
  { user, bucket, settings }: Found,
  prefix: string,
  ctx: DriverContext,
): Promise<Observation<BucketObserved>> {
  const owner = ownerOf(r, prefix);
  if (user && user.display_name !== owner.mark)
    return { state: 'foreign', detail: 'The gateway has another user of this name.' };
  if (bucket && bucket.owner !== owner.uid)
    return { state: 'foreign', detail: 'The gateway has another bucket of this name.' };
  if (!user && !bucket) return { state: 'absent' };
  const diff = [
    ...(user && isRgwUserUpToDate(user, owner) ? [] : ['owner']),
    ...(user && hasQuota(user, r.spec.quota_bytes) ? [] : ['quota']),
    ...(bucket ? settings.map(({ name }) => name) : ['bucket']),
  ].join(', ');
  const sizes = bucket?.usage['rgw.main'];
  const usage = bucket && { object_count: sizes?.num_objects ?? 0, size_bytes: sizes?.size ?? 0 };
  const days = bucket ? await readRgwTraffic(api, { uid: owner.uid, bucket: r.spec.name }, ctx) : [];
  return { state: 'present', upToDate: diff === '', observed: { usage, days }, ...(diff && { diff }) };
}

function hasQuota({ bucket_quota: { enabled, max_size } }: RgwUser, quotaBytes: number | null): boolean {
  return quotaBytes === null ? !enabled : enabled && max_size === quotaBytes;
}

async function ensure(api: RgwApi, r: Bucket, { user, bucket, settings }: Found, prefix: string, ctx: DriverContext) {
  const { spec } = r;
  const owner = ownerOf(r, prefix);
  if (user && user.display_name !== owner.mark) throw foreignRgwUser();
  if (bucket && bucket.owner !== owner.uid) throw foreignBucket();
  if (!user || !isRgwUserUpToDate(user, owner)) await ensureRgwUser(api, user, owner, ctx);
  if (!user || !hasQuota(user, spec.quota_bytes)) await setQuota(api, owner.uid, spec.quota_bytes, ctx);
  if (!bucket) {
    const made = await api.s3(spec.owner, 'PUT', `/${spec.name}`, {}, ctx);
    if (made.status === 409) throw foreignBucket();
    if (made.status >= 400) throw notTaken(made);
  }
  for (const { name, body } of settings) {
    if (name === 'versioning' && !bucket && !spec.versioning) continue;
    const call = body === null ? 'DELETE' : 'PUT';
    const answer = await api.s3(spec.owner, call, `/${spec.name}`, { [name]: '' }, ctx, body ?? '');
    if (answer.status >= 400 && answer.status !== 404) throw notTaken(answer);
  }
}

async function setQuota(api: RgwApi, uid: string, quotaBytes: number | null, ctx: DriverContext): Promise<void> {
  const query = { quota: '', uid, 'quota-type': 'bucket', enabled: quotaBytes !== null, 'max-objects': -1 };
  // The old limit is kept in the disabled quota.
  await api.admin('PUT', 'user', quotaBytes === null ? query : { ...query, 'max-size-kb': quotaBytes / 1024 }, ctx);
}

function foreignBucket(): DriverError {
  return new DriverError('conflict', 'The object gateway has another bucket of this name.');
}

/** A key that another gateway of the cluster does not know yet is rejected temporarily. */
function notTaken(answer: Parameters<typeof rgwError>[0]): DriverError {
  if (answer.status !== 403) return rgwError(answer);
  return Object.assign(new DriverError('transient', 'The object gateway does not know the owner of the bucket yet.'), {
    cause: new Error(answer.text.slice(0, 500)),
  });
}
