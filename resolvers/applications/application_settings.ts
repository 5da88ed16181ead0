import { Application } from '../../models/applications/application';
import { changeSettings, settingsOf } from '../../models/applications/application_settings';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    getApplicationSettings: async (_, { id }, ctx) => {
      const application = await Application.get(ctx, id);
      ctx.reply.etag = application.etag;
      return settingsOf(application);
    },
  },
  Mutation: {
    updateApplicationSettings: async (_, { id, input }, ctx) => {
      const application = await changeSettings(ctx, await Application.forUpdate(ctx, id), input);
      ctx.reply.etag = application.etag;
      return settingsOf(application);
    },
  },
};
