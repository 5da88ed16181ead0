import { batchOf, type LiveReader } from '../../contract/live';
import { Application } from '../../models/applications/application';
import { logPage, type LogLine } from '../../models/applications/log_line/page';
import { runLog } from '../../models/runs/log_scope';
import { linesAfter } from '../../models/applications/log_line/tail';
import { loadOne } from '../../models/base/load';
import { creatorOf } from '../../models/projects/activity_actor';
import { Run } from '../../models/runs/run';
import type { QueryListRunLogsArgs } from '../../schema/types';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listRuns: (_, args, ctx) => Run.list(ctx, args),
    getRun: (_, { id, run_id }, ctx) => Run.ofApplication(ctx, id, run_id),
    attachRun: async (_, { id, run_id }, ctx) => (await Run.ofApplication(ctx, id, run_id)).attachment(ctx),
    listRunLogs: async (_, { id, run_id, ...args }, ctx) =>
      logPage<LogLine>(ctx, await runLog(ctx, { id, run_id }), args),
  },
  Mutation: {
    createRun: (_, { id, input }, ctx) => Run.create(ctx, id, input),
    cancelRun: async (_, { id, run_id }, ctx) => {
      await Application.get(ctx, id);
      return (await Run.forUpdate(ctx, run_id, { application_id: id })).cancel(ctx);
    },
  },
  Run: {
    trigger: ({ trigger_type: type, trigger_id: id }) => ({ type, id }),
    created_by: (run, _, ctx) => creatorOf(ctx, run, 'run.created'),
    application: (run, _, ctx, info) => loadOne(Application, ctx, run.project_id, run.application_id, info),
  },
};

export const live: Record<string, LiveReader> = {
  listRunLogs: {
    topics: ({ id }) => [{ channel: 'logs', key: String(id) }],
    async read(given, ctx, after) {
      const { id, run_id, ...args } = given as QueryListRunLogsArgs;
      const found = await linesAfter(ctx, await runLog(ctx, { id, run_id }), args, after);
      return batchOf(found, ({ timestamp, source, level, message }) => ({ timestamp, source, level, message }));
    },
  },
};
