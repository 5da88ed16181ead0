import { Application } from '../models/application';
import { autoDeployOf, changeAutoDeploy } from '../models/auto_deploy';
import type { Resolvers } from '../schema/types';

export const resolvers: Resolvers = {
  Query: {
    getAutoDeploy: async (_, { id }, ctx) => {
      const { document, etag } = await autoDeployOf(ctx, await Application.get(ctx, id));
      ctx.reply.etag = etag;
      return document;
    },
  },
  Mutation: {
    updateAutoDeploy: async (_, { id, input }, ctx) => {
      const { document, etag } = await changeAutoDeploy(ctx, await Application.forUpdate(ctx, id), input);
      ctx.reply.etag = etag;
      return document;
    },
  },
};
