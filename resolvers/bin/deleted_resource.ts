import { DeletedResource } from '../../models/bin/deleted_resource';
import { creatorOf } from '../../models/projects/activity_actor';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listDeletedResources: (_, args, ctx) => DeletedResource.list(ctx, args),
  },
  Mutation: {
    restoreDeletedResource: async (_, { id, input }, ctx) =>
      (await DeletedResource.forUpdate(ctx, id)).restore(ctx, input ?? {}),
    purgeDeletedResource: async (_, { id }, ctx) => {
      await (await DeletedResource.forUpdate(ctx, id)).purge(ctx);
      return true;
    },
  },
  DeletedResource: {
    deleted_at: ({ created_at }) => created_at,
    deleted_by: ({ resource_id: id, resource_type, project_id }, _, ctx) =>
      creatorOf(ctx, { id, project_id }, `${resource_type}.deleted`),
  },
};
