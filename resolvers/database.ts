import { DatabaseUser } from '../models/database_user';
import { ManagedDatabase } from '../models/database';
import { page } from '../models/base/page';
import type { Resolvers } from '../schema/types';
import type { Confirm } from './index';

export const resolvers: Resolvers = {
  Query: {
    listDatabases: (_, args, ctx) => page(ManagedDatabase, ctx, args),
    getDatabase: (_, { id }, ctx) => ManagedDatabase.get(ctx, id),
    getDatabaseCredentials: async (_, { id }, ctx) => (await ManagedDatabase.get(ctx, id)).credentials(ctx),
  },
  Mutation: {
    createDatabase: (_, { input }, ctx) => ManagedDatabase.create(ctx, input),
    updateDatabase: async (_, { id, input }, ctx) => (await ManagedDatabase.forUpdate(ctx, id)).change(ctx, input),
    deleteDatabase: async (_, { id }, ctx) => {
      await (await ManagedDatabase.forUpdate(ctx, id)).destroy(ctx);
      return true;
    },
    startDatabase: async (_, { id }, ctx) => (await ManagedDatabase.forUpdate(ctx, id)).start(ctx),
    stopDatabase: async (_, { id }, ctx) => (await ManagedDatabase.forUpdate(ctx, id)).stop(ctx),
    restartDatabase: async (_, { id }, ctx) => (await ManagedDatabase.forUpdate(ctx, id)).restart(ctx),
    upgradeDatabase: async (_, { id, input }, ctx) => (await ManagedDatabase.forUpdate(ctx, id)).upgrade(ctx, input),
    restoreDatabase: async (_, { id, input }, ctx) => (await ManagedDatabase.forUpdate(ctx, id)).restore(ctx, input),
    rotateDatabaseCredentials: async (_, { id }, ctx) => (await ManagedDatabase.forUpdate(ctx, id)).rotate(ctx),
  },
};

export const confirm: Record<string, Confirm> = {
  rotateDatabaseCredentials: ({ id }, ctx) => DatabaseUser.applied(ctx, id as string),
};
