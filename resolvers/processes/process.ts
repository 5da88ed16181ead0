import { Application } from '../../models/applications/application';
import { childrenOf } from '../../models/applications/application/children';
import { loadOne } from '../../models/base/load';
import { page } from '../../models/base/page';
import { Process } from '../../models/processes/process';
import { startCommand } from '../../models/processes/process/start_command';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listProcesses: async (_, { id, ...args }, ctx) => {
      await Application.get(ctx, id);
      return page(Process, ctx, args, { application_id: id });
    },
    getProcess: (_, { id, process_id }, ctx) => Process.get(ctx, process_id, { application_id: id }),
  },
  Mutation: {
    createProcess: async (_, { id, input }, ctx) => Process.create(ctx, await Application.ofChild(ctx, id), input),
    updateProcess: async (_, { id, process_id, input }, ctx) => {
      const application = await Application.ofChild(ctx, id);
      return (await Process.forUpdate(ctx, process_id, { application_id: id })).change(ctx, application, input);
    },
    deleteProcess: async (_, { id, process_id }, ctx) => {
      await Application.ofChild(ctx, id);
      await (await Process.forUpdate(ctx, process_id, { application_id: id })).destroy(ctx);
      return true;
    },
    scaleProcess: async (_, { id, process_id, input }, ctx) => {
      const application = await Application.ofChild(ctx, id);
      return (await Process.forUpdate(ctx, process_id, { application_id: id })).scale(ctx, application, input);
    },
  },
  Application: {
    processes: (application, { limit }, ctx) => childrenOf(Process, ctx, application, limit),
  },
  Process: {
    effective_command: (process, _, ctx) => startCommand(ctx, process),
    application: (process, _, ctx, info) => loadOne(Application, ctx, process.project_id, process.application_id, info),
  },
};
