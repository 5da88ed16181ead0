import { BinEntry } from '../../models/bin/bin_entry';
import { ownDeletedProject, ownDeletedProjects } from '../../models/bin/deleted_project';
import { creatorOf } from '../../models/projects/activity_actor';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listDeletedResources: (_, args, ctx) => BinEntry.list(ctx, args),
    listDeletedProjects: (_, args, ctx) => ownDeletedProjects(ctx, args),
  },
  Mutation: {
    restoreDeletedResource: async (_, { id, input }, ctx) =>
      (await BinEntry.forUpdate(ctx, id)).restore(ctx, input ?? {}),
    restoreDeletedProject: async (_, { id, input }, ctx) =>
      (await ownDeletedProject(ctx, id)).restore(ctx, input ?? {}),
    purgeDeletedResource: async (_, { id }, ctx) => {
      await (await BinEntry.forUpdate(ctx, id)).purge(ctx);
      return true;
    },
  },
  BinEntry: {
    deleted_at: ({ created_at }) => created_at,
    deleted_by: ({ resource_id: id, resource_type, project_id }, _, ctx) =>
      creatorOf(ctx, { id, project_id }, `${resource_type}.deleted`),
  },
};
