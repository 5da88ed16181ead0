import { Application } from '../../models/applications/application';
import { restartApplication, startApplication, stopApplication } from '../../models/deployments/run_application';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Mutation: {
    startApplication: async (_, { id }, ctx) => startApplication(ctx, await Application.forUpdate(ctx, id)),
    stopApplication: async (_, { id }, ctx) => stopApplication(ctx, await Application.forUpdate(ctx, id)),
    restartApplication: async (_, { id, input }, ctx) =>
      restartApplication(ctx, await Application.forUpdate(ctx, id), input ?? {}),
  },
};
