import { fieldsBack, type Revert } from '../../contract/revert';
import { DatabaseReplica } from '../../models/databases/database_replica';
import { promoteReplica } from '../../models/databases/database_replica/promote';
import { loadOne } from '../../models/base/load';
import { ManagedDatabase } from '../../models/databases/database';
import { page } from '../../models/base/page';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listDatabaseReplicas: async (_, { id, ...args }, ctx) => {
      await ManagedDatabase.get(ctx, id);
      return page(DatabaseReplica, ctx, args, { database_id: id });
    },
    getDatabaseReplica: async (_, { id, replica_id }, ctx) => {
      await ManagedDatabase.get(ctx, id);
      return DatabaseReplica.get(ctx, replica_id, { database_id: id });
    },
  },
  Mutation: {
    createDatabaseReplica: async (_, { id, input }, ctx) =>
      DatabaseReplica.create(ctx, await ManagedDatabase.ofChild(ctx, id), input),
    updateDatabaseReplica: async (_, { id, replica_id, input }, ctx) => {
      const database = await ManagedDatabase.ofChild(ctx, id);
      return (await DatabaseReplica.forUpdate(ctx, replica_id, { database_id: id })).change(ctx, database, input);
    },
    deleteDatabaseReplica: async (_, { id, replica_id }, ctx) => {
      await ManagedDatabase.ofChild(ctx, id);
      await (await DatabaseReplica.forUpdate(ctx, replica_id, { database_id: id })).destroy(ctx);
      return true;
    },
    promoteDatabaseReplica: async (_, { id, replica_id }, ctx) => {
      await ManagedDatabase.ofChild(ctx, id);
      return promoteReplica(ctx, await DatabaseReplica.forUpdate(ctx, replica_id, { database_id: id }));
    },
  },
  DatabaseReplica: {
    database: (replica, _, ctx, info) => loadOne(ManagedDatabase, ctx, replica.project_id, replica.database_id, info),
  },
};

export const revert: Record<string, Revert> = {
  updateDatabaseReplica: fieldsBack({ id: 'replica_id', parents: { id: 'database' } }),
};
