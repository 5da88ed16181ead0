import { Application } from '../models/application';
import { page } from '../models/page';
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
      await (await Application.forUpdate(ctx, id)).destroy(ctx);
      return true;
    },
  },
};
