import * as logins from '../../models/identity/login/linked_login';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    loginMethods: (_, __, { config }) => ({
      password: config.loginPassword === 'on',
      providers: config.loginProviders.map(({ name, title }) => ({ name, title })),
    }),
    listLinkedLogins: (_, __, ctx) => logins.listLinkedLogins(ctx),
  },
  Mutation: {
    unlinkLogin: async (_, { id }, ctx) => {
      await logins.unlinkLogin(ctx, id);
      return true;
    },
  },
};
