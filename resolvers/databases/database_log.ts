import { logPage, type DatabaseLine } from '../../models/applications/log_line/page';
import { databaseLog } from '../../models/runs/log_scope';
import { linesAfter } from '../../models/applications/log_line/tail';
import type { QueryListDatabaseLogsArgs } from '../../schema/types';
import type { Resolvers } from '../types';
import { batchOf, type LiveReader } from '../../contract/live';

export const resolvers: Resolvers = {
  Query: {
    listDatabaseLogs: async (_, { id, replica_id, ...args }, ctx) =>
      logPage<DatabaseLine>(ctx, await databaseLog(ctx, { id, replica_id }), args),
  },
};

export const live: Record<string, LiveReader> = {
  listDatabaseLogs: {
    topics: ({ id }) => [{ channel: 'logs', key: String(id) }],
    async read(given, ctx, after) {
      const { id, replica_id, ...args } = given as QueryListDatabaseLogsArgs;
      const found = await linesAfter(ctx, await databaseLog(ctx, { id, replica_id }), args, after);
      return batchOf(found, ({ timestamp, source, level, message }) => ({ timestamp, source, level, message }));
    },
  },
};
