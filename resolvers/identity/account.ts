import { settlePersonalKeys } from '../../models/identity/api_key';
import * as sessions from '../../models/identity/session';
import * as twoFactor from '../../models/identity/two_factor';
import {
  changePassword,
  hashNewPassword,
  requirePassword,
  requirePasswordLogin,
  wrongField,
  type UserRow,
} from '../../models/identity/user';
import type { ChangePasswordInput, LoginInput, MutationDisableTwoFactorArgs } from '../../schema/types';
import type { Resolvers } from '../types';
import type { Prepare } from '../../resolvers';

export const resolvers: Resolvers = {
  Query: {
    viewer: (_, __, ctx) => sessions.viewer(ctx),
    listSessions: (_, args, ctx) => sessions.listSessions(ctx, args),
  },
  Mutation: {
    login: (_, __, ctx) => sessions.startSession(ctx, ctx.probed as UserRow),
    logout: async (_, __, ctx) => {
      await sessions.logout(ctx);
      return true;
    },
    revokeSession: async (_, { id }, ctx) => {
      await sessions.revokeSession(ctx, id);
      return true;
    },
    changePassword: async (_, { input: { revoke_personal_keys = false } }, ctx) => {
      await changePassword(ctx, ctx.probed as string, revoke_personal_keys ? ['personal_keys'] : []);
      return settlePersonalKeys(ctx, Boolean(revoke_personal_keys));
    },
    enrolTwoFactor: (_, __, ctx) => twoFactor.enrolTwoFactor(ctx),
    confirmTwoFactor: async (_, { code }, ctx) => ({ codes: await twoFactor.confirmTwoFactor(ctx, code) }),
    disableTwoFactor: async (_, __, ctx) => {
      await twoFactor.disableTwoFactor(ctx);
      return true;
    },
    regenerateRecoveryCodes: async (_, __, ctx) => ({ codes: await twoFactor.regenerateRecoveryCodes(ctx) }),
  },
};

// Passwords take half a second of work, and a refused code must stay counted: neither belongs into the transaction.
export const prepare: Record<string, Prepare> = {
  login: (args, ctx) => sessions.authenticateSession(ctx, args.input as LoginInput),
  changePassword: async (args, ctx) => {
    const { password, new_password } = args.input as ChangePasswordInput;
    requirePasswordLogin(ctx);
    const user = await requirePassword(ctx, password);
    if (new_password === password) throw wrongField('new_password', 'must differ from the current password');
    return hashNewPassword(new_password, 'new_password', user);
  },
  enrolTwoFactor: (args, ctx) => requirePassword(ctx, args.password as string),
  disableTwoFactor: (args, ctx) => {
    const { password, code } = args as MutationDisableTwoFactorArgs;
    return twoFactor.requirePasswordAndCode(ctx, password, code);
  },
  regenerateRecoveryCodes: (args, ctx) => twoFactor.requireCode(ctx, args.code as string),
};
