import { DatabaseUser } from '../../models/databases/database_user';
import { loadOne } from '../../models/base/load';
import { ManagedDatabase } from '../../models/databases/database';
import { page } from '../../models/base/page';
import type { Resolvers } from '../types';
import type { Confirm } from '../index';

export const resolvers: Resolvers = {
  Query: {
    listDatabaseUsers: async (_, { id, ...args }, ctx) => {
      await ManagedDatabase.get(ctx, id);
      return page(DatabaseUser, ctx, args, { database_id: id });
    },
    getDatabaseUser: async (_, { id, user_id }, ctx) => {
      await ManagedDatabase.get(ctx, id);
      return DatabaseUser.get(ctx, user_id, { database_id: id });
    },
    getDatabaseCredentials: async (_, { id }, ctx) => (await ManagedDatabase.get(ctx, id)).credentials(ctx),
  },
  Mutation: {
    createDatabaseUser: async (_, { id, input }, ctx) =>
      DatabaseUser.create(ctx, await ManagedDatabase.ofChild(ctx, id), input),
    deleteDatabaseUser: async (_, { id, user_id }, ctx) => {
      await ManagedDatabase.ofChild(ctx, id);
      await (await DatabaseUser.forUpdate(ctx, user_id, { database_id: id })).destroy(ctx);
      return true;
    },
    rotateDatabaseUserPassword: async (_, { id, user_id, input }, ctx) => {
      const database = await ManagedDatabase.ofChild(ctx, id);
      return (await DatabaseUser.forUpdate(ctx, user_id, { database_id: id })).rotate(ctx, database, input ?? {});
    },
    rotateDatabaseCredentials: async (_, { id, input }, ctx) =>
      (await ManagedDatabase.forUpdate(ctx, id)).rotate(ctx, input ?? {}),
  },
  DatabaseUser: {
    password: (user) => user.shown ?? null,
    previous_password_valid_until: (user) => user.previous_until,
    database: (user, _, ctx, info) => loadOne(ManagedDatabase, ctx, user.project_id, user.database_id, info),
  },
};

export const confirm: Record<string, Confirm> = {
  rotateDatabaseCredentials: ({ id }, ctx) => DatabaseUser.applied(ctx, id as string),
  createDatabaseUser: ({ id }, ctx) => DatabaseUser.applied(ctx, id as string),
  rotateDatabaseUserPassword: ({ id }, ctx) => DatabaseUser.applied(ctx, id as string),
};
