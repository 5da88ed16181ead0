import * as keys from '../../models/identity/api_key';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listPersonalKeys: (_, args, ctx) => keys.listPersonalKeys(ctx, args),
    listProjectKeys: (_, { project_id, ...args }, ctx) => keys.listProjectKeys(ctx, project_id, args),
  },
  Mutation: {
    createPersonalKey: (_, { input }, ctx) => keys.createPersonalKey(ctx, input),
    revokePersonalKey: async (_, { id }, ctx) => {
      await keys.revokePersonalKey(ctx, id);
      return true;
    },
    createProjectKey: (_, { project_id, input }, ctx) => keys.createProjectKey(ctx, project_id, input),
    revokeProjectKey: async (_, { project_id, id }, ctx) => {
      await keys.revokeProjectKey(ctx, project_id, id);
      return true;
    },
  },
};
