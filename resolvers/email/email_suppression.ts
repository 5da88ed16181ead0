import { normalizeMailbox } from '../../core/protocols/mailbox';
import { page } from '../../models/base/page';
import { EmailRelayZone } from '../../models/email/email_relay_zone';
import { EmailSuppression } from '../../models/email/email_suppression';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listEmailSuppressions: async (_, { id, ...args }, ctx) => {
      await EmailRelayZone.get(ctx, id);
      const named = { ...args, email: args.email && (normalizeMailbox(args.email) ?? args.email) };
      return page(EmailSuppression, ctx, named, { email_relay_zone_id: id });
    },
  },
  Mutation: {
    createEmailSuppression: async (_, { id, input }, ctx) =>
      EmailSuppression.create(ctx, await EmailRelayZone.hold(ctx, id), input),
    deleteEmailSuppression: async (_, { id, suppression_id }, ctx) => {
      await EmailRelayZone.hold(ctx, id);
      await (await EmailSuppression.forUpdate(ctx, suppression_id, { email_relay_zone_id: id })).remove(ctx);
      return true;
    },
  },
};
