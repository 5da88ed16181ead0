import { logPage, type DatabaseLine } from '../../models/applications/log_line/page';
import { databaseLog } from '../../models/applications/log_line/scope';
import { linesAfter } from '../../models/applications/log_line/tail';
import type { QueryListDatabaseLogsArgs, Resolvers } from '../../schema/types';
import type { LiveReader } from '../../contract/live';

export const resolvers: Resolvers = {
  Query: {
    listDatabaseLogs: async (_, { id, replica_id, ...args }, ctx) =>
      logPage<DatabaseLine>(ctx, await databaseLog(ctx, { id, replica_id }), args),
  },
};

export const live: Record<string, LiveReader> = {
  listDatabaseLogs: {
    topic: ({ id }) => ({ channel: 'logs', key: String(id) }),
    async read(given, ctx, after) {
      const { id, replica_id, ...args } = given as QueryListDatabaseLogsArgs;
      const lines = await linesAfter(ctx, await databaseLog(ctx, { id, replica_id }), args, after);
      return lines.map(({ id: position, line: { timestamp, source, level, message } }) => ({
        id: position,
        data: { timestamp, source, level, message },
      }));
    },
  },
};
