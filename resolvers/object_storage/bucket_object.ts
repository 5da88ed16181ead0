import { Bucket } from '../../models/object_storage/bucket';
import { pageOfObjects } from '../../models/object_storage/bucket/objects';
import { presign } from '../../models/object_storage/bucket/presign';
import { bucketUsage } from '../../models/object_storage/bucket/usage';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listBucketObjects: async (_, { id, ...args }, ctx) => pageOfObjects(ctx, await Bucket.get(ctx, id), args),
    getBucketUsage: async (_, { id, ...args }, ctx) => bucketUsage(ctx, await Bucket.get(ctx, id), args),
  },
  Mutation: {
    presignBucketObject: async (_, { id, input }, ctx) => presign(ctx, await Bucket.get(ctx, id), input),
  },
};
