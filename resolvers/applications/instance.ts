import { Application } from '../../models/applications/application';
import { childrenOf } from '../../models/applications/application/children';
import { Instance } from '../../models/applications/instance';
import { loadOne } from '../../models/base/load';
import { Process } from '../../models/processes/process';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listApplicationInstances: async (_, args, ctx) => {
      await Application.get(ctx, args.id);
      return Instance.list(ctx, args);
    },
  },
  Application: {
    instances: (application, { limit }, ctx) => childrenOf(Instance, ctx, application, limit),
  },
  Instance: {
    process: (instance, _, ctx, info) => loadOne(Process, ctx, instance.project_id, instance.process_id, info),
  },
};
