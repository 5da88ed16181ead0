import * as extensions from '../../models/databases/database_extension';
import { ManagedDatabase } from '../../models/databases/database';
import type { Resolvers } from '../types';
import type { Confirm } from '../index';

export const resolvers: Resolvers = {
  Query: {
    listDatabaseExtensions: async (_, args, ctx) =>
      extensions.listExtensions(ctx, await ManagedDatabase.get(ctx, args.id), args),
    getDatabaseExtension: async (_, { id, name }, ctx) =>
      extensions.getExtension(ctx, await ManagedDatabase.get(ctx, id), name),
  },
  Mutation: {
    enableDatabaseExtension: async (_, { id, name }, ctx) =>
      extensions.enableExtension(ctx, await ManagedDatabase.ofChild(ctx, id), name),
    disableDatabaseExtension: async (_, { id, name }, ctx) =>
      extensions.disableExtension(ctx, await ManagedDatabase.ofChild(ctx, id), name),
  },
};

const applied: Confirm = ({ id, name }, ctx) => extensions.extensionApplied(ctx, id as string, name as string);
export const confirm: Record<string, Confirm> = { enableDatabaseExtension: applied, disableDatabaseExtension: applied };
