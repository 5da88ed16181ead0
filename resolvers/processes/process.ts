import { isDeepStrictEqual } from 'node:util';
import { createdBack, deletedBack, expectedFields, fieldsBack, type Revert } from '../../contract/revert';
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

const CHILD = {
  kind: 'process',
  parent: 'application',
  create: 'createProcess',
  delete: 'deleteProcess',
  id: 'process_id',
  revives: true,
} as const;

export const revert: Record<string, Revert> = {
  createProcess: createdBack(CHILD),
  deleteProcess: deletedBack(CHILD),
  updateProcess: fieldsBack({ id: 'process_id', parents: { id: 'application' } }),
  scaleProcess: ({ operation, args: { id, process_id }, changes }) => {
    const change = changes.find((one) => one.id === process_id);
    if (!change?.before || !change.after) return 'unchanged';
    const { autoscaling, instances } = change.before;
    const scaled = change.after.autoscaling;
    if (isDeepStrictEqual([autoscaling, instances], [scaled, change.after.instances])) return 'unchanged';
    return {
      calls: [{ operation, args: { id, process_id, input: autoscaling ? { autoscaling } : { instances } } }],
      holds: [{ kind: 'application', id: id as string }],
      // Autoscaling moves the count by itself.
      expected: [expectedFields(change, scaled ? ['autoscaling'] : ['autoscaling', 'instances'])],
    };
  },
};
