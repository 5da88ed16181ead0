import { Application } from '../models/application';
import { childrenOf } from '../models/application/children';
import { Domain } from '../models/domain';
import { EnvironmentVariable } from '../models/environment_variable';
import { page } from '../models/page';
import { Volume } from '../models/volume';
import type { Resolvers } from '../schema/types';

export const resolvers: Resolvers = {
  Query: {
    listApplications: (_, args, ctx) => page(Application, ctx, args),
    getApplication: (_, { id }, ctx) => Application.get(ctx, id),
  },
  Mutation: {
    createApplication: (_, { input }, ctx) => Application.create(ctx, input),
    updateApplication: async (_, { id, input }, ctx) => (await Application.forUpdate(ctx, id)).change(ctx, input),
    deleteApplication: async (_, { id }, ctx) => {
      await (await Application.toDestroy(ctx, id)).destroy(ctx);
      return true;
    },
  },
  Application: {
    volumes: (application, { limit }, ctx) => childrenOf(Volume, ctx, application, limit),
    domains: (application, { limit }, ctx) => childrenOf(Domain, ctx, application, limit),
    environment_variables: (application, { limit }, ctx) => childrenOf(EnvironmentVariable, ctx, application, limit),
  },
};
