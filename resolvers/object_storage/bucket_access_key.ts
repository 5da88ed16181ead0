import { fieldsBack, type Revert } from '../../contract/revert';
import { BucketAccessKey } from '../../models/object_storage/bucket_access_key';
import { page } from '../../models/base/page';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listBucketAccessKeys: (_, args, ctx) => page(BucketAccessKey, ctx, args),
    getBucketAccessKey: (_, { id }, ctx) => BucketAccessKey.get(ctx, id),
  },
  Mutation: {
    createBucketAccessKey: (_, { input }, ctx) => BucketAccessKey.create(ctx, input),
    updateBucketAccessKey: async (_, { id, input }, ctx) =>
      (await BucketAccessKey.forUpdate(ctx, id)).change(ctx, input),
    deleteBucketAccessKey: async (_, { id }, ctx) => {
      await (await BucketAccessKey.forUpdate(ctx, id)).destroy(ctx);
      return true;
    },
    rotateBucketAccessKey: async (_, { id }, ctx) => (await BucketAccessKey.forUpdate(ctx, id)).rotate(ctx),
  },
  BucketAccessKey: {
    secret_access_key: (key) => key.shown ?? null,
    status: (key) => key.currentStatus,
  },
};

export const revert: Record<string, Revert> = {
  updateBucketAccessKey: fieldsBack(),
};
