import * as links from '../../models/identity/account_link';
import { prepareOwner, setUpOwner, type PreparedOwner } from '../../models/identity/first_start';
import type { RequestPasswordResetInput, ResetPasswordInput, SetUpOwnerInput } from '../../schema/types';
import type { Resolvers } from '../types';
import type { Prepare } from '../../resolvers';
import { addressBlock } from '../../core/protocols/addresses';
import { ADDRESS_TIMES } from '../../models/identity/login_attempts';

export const resolvers: Resolvers = {
  Mutation: {
    requestPasswordReset: async (_, { input }, ctx) => {
      await links.requestPasswordReset(ctx, input.email);
      return true;
    },
    resetPassword: async (_, { input }, ctx) => {
      await links.resetPassword(ctx, input.token, ctx.probed as string);
      return true;
    },
    requestEmailConfirmation: async (_, __, ctx) => {
      await links.requestEmailConfirmation(ctx);
      return true;
    },
    confirmEmail: async (_, { token }, ctx) => {
      await links.confirmEmail(ctx, token);
      return true;
    },
    setUpOwner: (_, { input }, ctx) => setUpOwner(ctx, input.code, ctx.probed as PreparedOwner),
  },
};

// A refused attempt must stay counted, and a password takes half a second of work: neither belongs into a transaction.
export const prepare: Record<string, Prepare> = {
  requestPasswordReset: (args, ctx) => links.prepareResetRequest(ctx, (args.input as RequestPasswordResetInput).email),
  resetPassword: (args, ctx) => {
    const { token, new_password } = args.input as ResetPasswordInput;
    return links.prepareReset(ctx, token, new_password);
  },
  setUpOwner: (args, ctx) => prepareOwner(ctx, args.input as SetUpOwnerInput),
  confirmEmail: (_, ctx) => ctx.attempt(`confirmation link ${addressBlock(ctx.address)}`, ADDRESS_TIMES),
};
