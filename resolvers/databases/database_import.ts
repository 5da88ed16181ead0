import { loadOne } from '../../models/base/load';
import { ManagedDatabase } from '../../models/databases/database';
import { DatabaseImport } from '../../models/databases/database_import';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listDatabaseImports: async (_, args, ctx) => {
      await ManagedDatabase.get(ctx, args.id);
      return DatabaseImport.list(ctx, args);
    },
    getDatabaseImport: async (_, { id, import_id }, ctx) => {
      await ManagedDatabase.get(ctx, id);
      return DatabaseImport.get(ctx, import_id, { database_id: id });
    },
  },
  Mutation: {
    createDatabaseImport: async (_, { id, input }, ctx) =>
      DatabaseImport.create(ctx, await ManagedDatabase.ofChild(ctx, id), input),
    finishDatabaseImport: async (_, { id, import_id, input }, ctx) => {
      await ManagedDatabase.hold(ctx, id);
      return (await DatabaseImport.forUpdate(ctx, import_id, { database_id: id })).finish(ctx, input);
    },
    cancelDatabaseImport: async (_, { id, import_id }, ctx) => {
      await ManagedDatabase.hold(ctx, id);
      return (await DatabaseImport.forUpdate(ctx, import_id, { database_id: id })).cancel(ctx);
    },
  },
  DatabaseImport: {
    database: (row, _, ctx, info) => loadOne(ManagedDatabase, ctx, row.project_id, row.database_id, info),
  },
};
