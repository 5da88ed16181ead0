import { fieldsBack, type Revert } from '../../contract/revert';
import { Bucket } from '../../models/object_storage/bucket';
import { endpointOf } from '../../models/object_storage/bucket/endpoint';
import { page } from '../../models/base/page';
import type { Resolvers } from '../types';
import type { Prepare } from '../index';

export const resolvers: Resolvers = {
  Query: {
    listBuckets: (_, args, ctx) => page(Bucket, ctx, args),
    getBucket: (_, { id }, ctx) => Bucket.get(ctx, id),
  },
  Mutation: {
    createBucket: (_, { input }, ctx) => Bucket.create(ctx, input),
    updateBucket: async (_, { id, input }, ctx) => (await Bucket.forUpdate(ctx, id)).change(ctx, input),
    deleteBucket: async (_, { id }, ctx) => {
      await (await Bucket.forUpdate(ctx, id)).destroy(ctx);
      return true;
    },
  },
  Bucket: {
    endpoint: (_bucket, _, ctx) => endpointOf(ctx.config),
    public_url: (bucket, _, ctx) => bucket.publicUrl(ctx),
  },
};

export const prepare: Record<string, Prepare> = {
  deleteBucket: ({ id }, ctx) => Bucket.probe(ctx, id as string),
};

export const revert: Record<string, Revert> = {
  updateBucket: fieldsBack(),
};
