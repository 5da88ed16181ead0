// Buckets that access keys create and delete over S3: by the rules of the API, in the project and the name of the key.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context, ProjectAccess } from '../../../core/context';
import { Problem } from '../../../core/errors';
import { ObjectRefused, type Refusal } from '../../../core/protocols/objects';
import { named } from '../../../db/statement';
import type { ObjectCatalog, ServedKey } from '../../../engines/object_storage';
import { Bucket } from '../../../models/object_storage/bucket';
import { recordProjectEvent } from '../../../models/projects/activity';
import { makeContext } from '../../platform/context';
import type { Platform } from '../../platform/platform';

const PROJECT = named(`select p.id, p.name, p.account_id, p.default_region, a.status as account_status
  from projects p join accounts a on a.id = p.account_id where p.id = $1 and p.deleted_at is null`);
const OF_NAME = named('select project_id, deleted_at from buckets where name = $1');
/** A bucket that was just deleted keeps its name until its files are removed. */
const REMOVAL_MS = 5_000;
const REMOVAL_POLL_MS = 200;

const REFUSALS: Partial<Record<string, Refusal>> = {
  bucket_not_empty: 'BucketNotEmpty',
  deletion_protected: 'AccessDenied',
  resource_in_use: 'InvalidBucketState',
  not_found: 'NoSuchBucket',
  project_not_found: 'AccessDenied',
};

export function openBucketRequests(platform: Platform): Pick<ObjectCatalog, 'createBucket' | 'deleteBucket'> {
  return {
    async createBucket(key, { request_id, region, name, object_lock, ...ofClient }) {
      const ctx = await contextOf(platform, key, request_id);
      const input = { name, object_lock, ...(region !== null && { region }) };
      const create = (): Promise<void> =>
        ctx.transact(async (inner) =>
          record(inner, key, 'bucket.created', await Bucket.create(inner, input, ofClient)),
        );
      for (const until = Date.now() + REMOVAL_MS; ; await sleep(REMOVAL_POLL_MS)) {
        const failure = await create().then(() => null, toProblem);
        if (failure === null) return;
        if (failure.code === 'reference_not_found')
          throw new ObjectRefused('InvalidLocationConstraint', `The only region is ${platform.config.regionId}.`);
        if (failure.code !== 'name_taken') throw refusalOf(failure);
        const taken = await refusalOfName(platform, key, name);
        if (taken !== 'OperationAborted' || Date.now() > until) throw new ObjectRefused(taken);
      }
    },
    async deleteBucket(key, { id }, requestId) {
      const ctx = await contextOf(platform, key, requestId);
      const failure = await ctx
        .transact(async (inner) => {
          const bucket = await Bucket.forUpdate(inner, id);
          await bucket.destroy(inner);
          await record(inner, key, 'bucket.deleted', bucket);
        })
        .then(() => null, toProblem);
      if (failure) throw refusalOf(failure);
    },
  };
}

/** @throws ObjectRefused SlowDown, AccessDenied */
async function contextOf(platform: Platform, key: ServedKey, request_id: string): Promise<Context> {
  const [row] = await platform.database.query<Omit<ProjectAccess, 'role'> & { account_status: string }>(PROJECT, [
    key.projectId,
  ]);
  if (!row || row.account_status === 'suspended') throw new ObjectRefused('AccessDenied');
  const { account_status: _, ...project } = row;
  const { allowed } = await platform.limiter.take(project.account_id, 'write', 1);
  if (!allowed) throw new ObjectRefused('SlowDown');
  const origin = { request_id, address: '', user_agent: '', project_header: undefined };
  return { ...makeContext(platform, origin), project: { ...project, role: 'developer' } };
}

async function record({ sql }: Context, key: ServedKey, action: string, bucket: Bucket): Promise<void> {
  const { id, name, project_id } = bucket;
  const actor = { type: 'access_key' as const, id: key.id, name: key.name };
  await recordProjectEvent(sql, { project_id, action, actor, key_id: null, resource: { type: 'bucket', id, name } });
}

/** @throws what is no problem of a client */
function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  throw error;
}

async function refusalOfName({ database }: Platform, key: ServedKey, name: string): Promise<Refusal> {
  const [row] = await database.query<{ project_id: string; deleted_at: string | null }>(OF_NAME, [name]);
  if (row && row.project_id !== key.projectId) return 'BucketAlreadyExists';
  return !row || row.deleted_at !== null ? 'OperationAborted' : 'BucketAlreadyOwnedByYou';
}

function refusalOf(failure: Problem): Error {
  const { code, detail } = failure;
  if (code === 'quota_exceeded') {
    const isOfBuckets = failure.members.resource === 'buckets';
    return new ObjectRefused(isOfBuckets ? 'TooManyBuckets' : 'QuotaExceeded', detail);
  }
  const refusal = REFUSALS[code];
  return refusal ? new ObjectRefused(refusal, code === 'not_found' ? undefined : detail) : failure;
}
