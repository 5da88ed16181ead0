import { Approval, prepareApproval } from '../../models/approvals/approval';
import { shownInput } from '../../models/approvals/approval/shown_input';
import { page } from '../../models/base/page';
import type { ApproveCallInput } from '../../schema/types';
import type { Prepare } from '../../contract/admission';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listApprovals: (_, args, ctx) => page(Approval, ctx, args),
    getApproval: (_, { id }, ctx) => Approval.get(ctx, id),
  },
  Mutation: {
    approveCall: async (_, { id }, ctx) => (await Approval.forUpdate(ctx, id)).approve(ctx),
    refuseCall: async (_, { id }, ctx) => (await Approval.forUpdate(ctx, id)).refuse(ctx),
  },
  Approval: {
    status: ({ current }) => current,
    input: (approval, _, ctx) => shownInput(ctx, approval),
    url: ({ project_id, id }, _, ctx) => `${ctx.config.baseUrl}/projects/${project_id}/approvals/${id}`,
  },
};

// A refused code must stay counted, so it is checked outside of the transaction.
export const prepare: Record<string, Prepare> = {
  approveCall: ({ id, input }, ctx) =>
    prepareApproval(ctx, id as string, (input as ApproveCallInput | null | undefined)?.code),
};
