import { fieldsBack, type Revert } from '../../contract/revert';
import { page } from '../../models/base/page';
import { GitIntegration, type TokenAnswer } from '../../models/integrations/git_integration';
import { authorizationUrlOf } from '../../models/integrations/git_integration/oauth';
import type { GitAccount } from '../../core/protocols/git_provider';
import type { CreateGitIntegrationInput, UpdateGitIntegrationInput } from '../../schema/types';
import type { Resolvers } from '../types';
import type { Prepare } from '../index';

export const resolvers: Resolvers = {
  Query: {
    listGitIntegrations: (_, args, ctx) => page(GitIntegration, ctx, args),
    getGitIntegration: (_, { id }, ctx) => GitIntegration.get(ctx, id),
  },
  Mutation: {
    createGitIntegration: (_, { input }, ctx) => GitIntegration.create(ctx, input, ctx.probed as GitAccount | null),
    updateGitIntegration: async (_, { id, input }, ctx) =>
      (await GitIntegration.forUpdate(ctx, id)).change(ctx, input, ctx.probed as GitAccount | null),
    deleteGitIntegration: async (_, { id }, ctx) => {
      await (await GitIntegration.forUpdate(ctx, id)).destroy(ctx);
      return true;
    },
    verifyGitIntegration: async (_, { id }, ctx) =>
      (await GitIntegration.forUpdate(ctx, id)).verify(ctx, ctx.probed as TokenAnswer | null),
  },
  GitIntegration: {
    authorization_url: (integration, _, ctx) => authorizationUrlOf(ctx, integration),
  },
};

export const prepare: Record<string, Prepare> = {
  createGitIntegration: ({ input }, ctx) => GitIntegration.probeNew(ctx, input as CreateGitIntegrationInput),
  updateGitIntegration: ({ id, input }, ctx) =>
    GitIntegration.probeChange(ctx, id as string, input as UpdateGitIntegrationInput),
  verifyGitIntegration: ({ id }, ctx) => GitIntegration.probe(ctx, id as string),
};

const FIELDS_BACK = fieldsBack();

export const revert: Record<string, Revert> = {
  updateGitIntegration: (done) => {
    const { access_token, auth_type } = done.args.input as UpdateGitIntegrationInput;
    return access_token == null && auth_type == null ? FIELDS_BACK(done) : 'secret';
  },
};
