import { fieldsBack, type Revert } from '../../contract/revert';
import { DatabaseEndpoint } from '../../models/databases/database_endpoint';
import { loadOne } from '../../models/base/load';
import { ManagedDatabase } from '../../models/databases/database';
import { page } from '../../models/base/page';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listDatabaseEndpoints: async (_, { id, ...args }, ctx) => {
      await ManagedDatabase.get(ctx, id);
      return page(DatabaseEndpoint, ctx, args, { database_id: id });
    },
    getDatabaseEndpoint: async (_, { id, endpoint_id }, ctx) => {
      await ManagedDatabase.get(ctx, id);
      return DatabaseEndpoint.get(ctx, endpoint_id, { database_id: id });
    },
  },
  Mutation: {
    createDatabaseEndpoint: async (_, { id, input }, ctx) =>
      DatabaseEndpoint.create(ctx, await ManagedDatabase.ofChild(ctx, id), input),
    updateDatabaseEndpoint: async (_, { id, endpoint_id, input }, ctx) => {
      const database = await ManagedDatabase.ofChild(ctx, id);
      return (await DatabaseEndpoint.forUpdate(ctx, endpoint_id, { database_id: id })).change(ctx, database, input);
    },
    deleteDatabaseEndpoint: async (_, { id, endpoint_id }, ctx) => {
      await ManagedDatabase.ofChild(ctx, id);
      await (await DatabaseEndpoint.forUpdate(ctx, endpoint_id, { database_id: id })).destroy(ctx);
      return true;
    },
  },
  DatabaseEndpoint: {
    host: (endpoint, _, ctx) => endpoint.hostFor(ctx.config),
    database: (endpoint, _, ctx, info) =>
      loadOne(ManagedDatabase, ctx, endpoint.project_id, endpoint.database_id, info),
  },
};

export const revert: Record<string, Revert> = {
  updateDatabaseEndpoint: fieldsBack({ id: 'endpoint_id', parents: { id: 'database' } }),
};
