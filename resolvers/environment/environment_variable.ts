import { Application } from '../../models/applications/application';
import { EnvironmentVariable } from '../../models/environment/environment_variable';
import { setVariables } from '../../models/environment/environment_variable/batch';
import { page } from '../../models/base/page';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listEnvironmentVariables: async (_, { id, ...args }, ctx) => {
      const application = await Application.get(ctx, id);
      return page(EnvironmentVariable, ctx, { ...args, sort: args.sort ?? 'key' }, { application_id: application.id });
    },
  },
  Mutation: {
    setEnvironmentVariable: async (_, { id, key, input }, ctx) =>
      EnvironmentVariable.put(ctx, await Application.hold(ctx, id), key, input),
    setEnvironmentVariables: async (_, { id, input }, ctx) =>
      setVariables(ctx, await Application.held(ctx, id), input.variables),
    deleteEnvironmentVariable: async (_, { id, key }, ctx) => {
      await (await EnvironmentVariable.ofKey(ctx, await Application.hold(ctx, id), key)).destroy(ctx);
      return true;
    },
  },
  EnvironmentVariable: {
    value: (variable, _, ctx) => variable.reveal(ctx),
  },
};
