import { fieldsBack, type Revert } from '../../contract/revert';
import { ManagedDatabase } from '../../models/databases/database';
import { storageUsedBytes } from '../../models/databases/database/storage_used';
import { page } from '../../models/base/page';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listDatabases: (_, args, ctx) => page(ManagedDatabase, ctx, args),
    getDatabase: (_, { id }, ctx) => ManagedDatabase.get(ctx, id),
  },
  Mutation: {
    createDatabase: (_, { input }, ctx) => ManagedDatabase.create(ctx, input),
    updateDatabase: async (_, { id, input }, ctx) => (await ManagedDatabase.forUpdate(ctx, id)).change(ctx, input),
    deleteDatabase: async (_, { id }, ctx) => {
      await (await ManagedDatabase.forUpdate(ctx, id)).destroy(ctx);
      return true;
    },
  },
  Database: {
    storage_used_bytes: ({ id }, _, ctx) => storageUsedBytes(ctx, id),
  },
};

export const revert: Record<string, Revert> = {
  updateDatabase: fieldsBack({ growing: ['storage_gb'] }),
};
