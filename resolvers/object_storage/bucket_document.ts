import { documentBack, type Revert } from '../../contract/revert';
import { Bucket } from '../../models/object_storage/bucket';
import { setCors, setLifecycle, setPolicy } from '../../models/object_storage/bucket/documents';
import type { Context } from '../../core/context';
import type { BucketPolicy } from '../../schema/types';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    getBucketCors: async (_, { id }, ctx) => ({ rules: shown(ctx, await Bucket.get(ctx, id)).cors }),
    getBucketLifecycle: async (_, { id }, ctx) => ({ rules: shown(ctx, await Bucket.get(ctx, id)).lifecycle }),
    getBucketPolicy: async (_, { id }, ctx) => shownPolicy(ctx, await Bucket.get(ctx, id)),
  },
  Mutation: {
    setBucketCors: async (_, { id, input }, ctx) => ({
      rules: shown(ctx, await setCors(ctx, await Bucket.forUpdate(ctx, id), input)).cors,
    }),
    deleteBucketCors: async (_, { id }, ctx) => {
      await (await Bucket.forUpdate(ctx, id)).update(ctx, { cors: [] });
      return true;
    },
    setBucketLifecycle: async (_, { id, input }, ctx) => ({
      rules: shown(ctx, await setLifecycle(ctx, await Bucket.forUpdate(ctx, id), input)).lifecycle,
    }),
    deleteBucketLifecycle: async (_, { id }, ctx) => {
      await (await Bucket.forUpdate(ctx, id)).update(ctx, { lifecycle: [] });
      return true;
    },
    setBucketPolicy: async (_, { id, input }, ctx) =>
      shownPolicy(ctx, await setPolicy(ctx, await Bucket.forUpdate(ctx, id), input)),
    deleteBucketPolicy: async (_, { id }, ctx) => {
      await (await Bucket.forUpdate(ctx, id)).update(ctx, { policy: [], policy_document: null });
      return true;
    },
  },
};

function shownPolicy(ctx: Context, bucket: Bucket): BucketPolicy {
  return { statements: shown(ctx, bucket).policy.map((one) => ({ ...one, conditions: one.conditions ?? [] })) };
}

/** The version of a document is that of its bucket. */
function shown(ctx: Context, bucket: Bucket): Bucket {
  ctx.reply.etag = bucket.etag;
  return bucket;
}

const CORS = documentBack({
  ...{ kind: 'bucket', column: 'cors', field: 'rules' },
  ...{ set: 'setBucketCors', delete: 'deleteBucketCors' },
});
const LIFECYCLE = documentBack({
  ...{ kind: 'bucket', column: 'lifecycle', field: 'rules' },
  ...{ set: 'setBucketLifecycle', delete: 'deleteBucketLifecycle' },
});
const POLICY = documentBack({
  ...{ kind: 'bucket', column: 'policy', field: 'statements' },
  ...{ set: 'setBucketPolicy', delete: 'deleteBucketPolicy' },
});

export const revert: Record<string, Revert> = {
  setBucketCors: CORS,
  deleteBucketCors: CORS,
  setBucketLifecycle: LIFECYCLE,
  deleteBucketLifecycle: LIFECYCLE,
  setBucketPolicy: POLICY,
  deleteBucketPolicy: POLICY,
};
