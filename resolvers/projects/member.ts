import * as members from '../../models/projects/member';
import type { AcceptInvitationInput } from '../../schema/types';
import type { Resolvers } from '../types';
import type { Prepare } from '../../resolvers';

export const resolvers: Resolvers = {
  Query: {
    listMembers: (_, { project_id, ...args }, ctx) => members.listMembers(ctx, project_id, args),
    listInvitations: (_, { project_id, ...args }, ctx) => members.listInvitations(ctx, project_id, args),
  },
  Mutation: {
    inviteMember: (_, { project_id, input }, ctx) => members.inviteMember(ctx, project_id, input),
    revokeInvitation: async (_, { project_id, id }, ctx) => {
      await members.revokeInvitation(ctx, project_id, id);
      return true;
    },
    acceptInvitation: (_, { input }, ctx) => members.acceptInvitation(ctx, input, ctx.probed as string | null),
    changeMemberRole: (_, { project_id, user_id, role }, ctx) =>
      members.changeMemberRole(ctx, project_id, user_id, role),
    removeMember: async (_, { project_id, user_id }, ctx) => {
      await members.removeMember(ctx, project_id, user_id);
      return true;
    },
  },
};

export const prepare: Record<string, Prepare> = {
  acceptInvitation: (args, ctx) => members.prepareAcceptance(ctx, args.input as AcceptInvitationInput),
};
