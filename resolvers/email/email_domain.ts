import { fieldsBack, type Revert } from '../../contract/revert';
import { newDkimKeys, type DkimKey } from '../../core/protocols/dkim';
import { page } from '../../models/base/page';
import { EmailDomain } from '../../models/email/email_domain';
import type { EmailFindings } from '../../models/email/email_domain/instructions';
import type { Resolvers } from '../types';
import type { Prepare } from '../index';

export const resolvers: Resolvers = {
  Query: {
    listEmailDomains: (_, args, ctx) => page(EmailDomain, ctx, args),
    getEmailDomain: (_, { id }, ctx) => EmailDomain.get(ctx, id),
  },
  Mutation: {
    createEmailDomain: (_, { input }, ctx) => EmailDomain.create(ctx, input, ctx.probed as DkimKey[]),
    updateEmailDomain: async (_, { id, input }, ctx) => (await EmailDomain.forUpdate(ctx, id)).change(ctx, input),
    deleteEmailDomain: async (_, { id }, ctx) => {
      await (await EmailDomain.forUpdate(ctx, id)).destroy(ctx);
      return true;
    },
    verifyEmailDomain: async (_, { id }, ctx) =>
      (await EmailDomain.forUpdate(ctx, id)).verify(ctx, ctx.probed as EmailFindings | null),
    rotateEmailDomainDkim: async (_, { id }, ctx) =>
      (await EmailDomain.forUpdate(ctx, id)).rotateDkim(ctx, ctx.probed as DkimKey[]),
  },
  EmailDomain: {
    dns_records: (domain, _, ctx) => domain.instructions(ctx),
  },
};

export const prepare: Record<string, Prepare> = {
  createEmailDomain: () => newDkimKeys('current'),
  verifyEmailDomain: ({ id }, ctx) => EmailDomain.probe(ctx, id as string),
  rotateEmailDomainDkim: () => newDkimKeys('next'),
};

export const revert: Record<string, Revert> = {
  updateEmailDomain: fieldsBack(),
};
