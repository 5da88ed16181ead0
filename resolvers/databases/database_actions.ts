import { ManagedDatabase } from '../../models/databases/database';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Mutation: {
    startDatabase: async (_, { id }, ctx) => (await ManagedDatabase.forUpdate(ctx, id)).start(ctx),
    stopDatabase: async (_, { id }, ctx) => (await ManagedDatabase.forUpdate(ctx, id)).stop(ctx),
    restartDatabase: async (_, { id }, ctx) => (await ManagedDatabase.forUpdate(ctx, id)).restart(ctx),
    upgradeDatabase: async (_, { id, input }, ctx) => (await ManagedDatabase.forUpdate(ctx, id)).upgrade(ctx, input),
    restoreDatabase: async (_, { id, input }, ctx) => (await ManagedDatabase.forUpdate(ctx, id)).restore(ctx, input),
  },
};
