import { DatabaseBackup } from '../../models/databases/database_backup';
import { loadOne } from '../../models/base/load';
import { ManagedDatabase } from '../../models/databases/database';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listDatabaseBackups: async (_, args, ctx) => {
      await ManagedDatabase.get(ctx, args.id);
      return DatabaseBackup.list(ctx, args);
    },
    listProjectDatabaseBackups: (_, args, ctx) => DatabaseBackup.listOfProject(ctx, args),
    getDatabaseBackup: async (_, { id, backup_id }, ctx) => {
      await ManagedDatabase.get(ctx, id);
      return DatabaseBackup.get(ctx, backup_id, { database_id: id });
    },
    getDatabaseBackupDownload: async (_, { id, backup_id }, ctx) => {
      await ManagedDatabase.get(ctx, id);
      return (await DatabaseBackup.get(ctx, backup_id, { database_id: id })).download(ctx);
    },
  },
  Mutation: {
    createDatabaseBackup: async (_, { id, input }, ctx) =>
      DatabaseBackup.create(ctx, await ManagedDatabase.ofChild(ctx, id), input),
    proveDatabaseBackup: async (_, { id, backup_id }, ctx) => {
      const database = await ManagedDatabase.ofChild(ctx, id);
      return (await DatabaseBackup.forUpdate(ctx, backup_id, { database_id: id })).prove(ctx, database);
    },
    deleteDatabaseBackup: async (_, { id, backup_id }, ctx) => {
      const database = await ManagedDatabase.ofChild(ctx, id);
      await (await DatabaseBackup.forUpdate(ctx, backup_id, { database_id: id })).destroy(ctx, database);
      return true;
    },
  },
  DatabaseBackup: {
    database: (backup, _, ctx, info) => loadOne(ManagedDatabase, ctx, backup.project_id, backup.database_id, info),
  },
};
