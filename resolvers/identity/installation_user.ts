import { endUserSessions, listInstallationUsers, listUserSessions } from '../../models/identity/installation_user';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listInstallationUsers: (_, args, ctx) => listInstallationUsers(ctx, args),
    listUserSessions: (_, args, ctx) => listUserSessions(ctx, args),
  },
  Mutation: {
    endUserSessions: (_, { user_id }, ctx) => endUserSessions(ctx, user_id),
  },
};
