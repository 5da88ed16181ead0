import { logPage, type LogLine, type StepLine } from '../../models/applications/log_line/page';
import { applicationLog, deploymentLog } from '../../models/runs/log_scope';
import { linesAfter } from '../../models/applications/log_line/tail';
import type { QueryListApplicationLogsArgs, QueryListDeploymentLogsArgs } from '../../schema/types';
import type { Resolvers } from '../types';
import { batchOf, type LiveReader } from '../../contract/live';

export const resolvers: Resolvers = {
  Query: {
    listApplicationLogs: async (_, { id, preview_id, ...args }, ctx) =>
      logPage<LogLine>(ctx, await applicationLog(ctx, { id, preview_id }), args),
    listDeploymentLogs: async (_, { id, deployment_id, ...args }, ctx) =>
      logPage<StepLine>(ctx, await deploymentLog(ctx, { id, deployment_id }), args),
  },
};

export const live: Record<string, LiveReader> = {
  listApplicationLogs: {
    topics: ({ id }) => [{ channel: 'logs', key: String(id) }],
    async read(given, ctx, after) {
      const { id, preview_id, ...args } = given as QueryListApplicationLogsArgs;
      const found = await linesAfter(ctx, await applicationLog(ctx, { id, preview_id }), args, after);
      return batchOf(found, ({ step: _, ...line }) => line);
    },
  },
  listDeploymentLogs: {
    topics: ({ id }) => [{ channel: 'logs', key: String(id) }],
    async read(given, ctx, after) {
      const { id, deployment_id, ...args } = given as QueryListDeploymentLogsArgs;
      const found = await linesAfter(ctx, await deploymentLog(ctx, { id, deployment_id }), args, after);
      return batchOf(found, ({ timestamp, source, level, message, step }) => ({
        timestamp,
        source,
        level,
        message,
        step,
      }));
    },
  },
};
