import { createdBack, deletedBack, type Revert } from '../../contract/revert';
import type { Prepare } from '../index';
import { Application } from '../../models/applications/application';
import { Domain } from '../../models/domains/domain';
import type { Findings } from '../../models/domains/domain/instructions';
import { loadOne } from '../../models/base/load';
import { page } from '../../models/base/page';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listApplicationDomains: async (_, { id, ...args }, ctx) => {
      await Application.get(ctx, id);
      return page(Domain, ctx, args, { application_id: id });
    },
  },
  Mutation: {
    addApplicationDomain: (_, { id, input }, ctx) => Domain.add(ctx, id, input),
    verifyApplicationDomain: async (_, { id, domain_id }, ctx) =>
      (await Domain.forUpdate(ctx, domain_id, { application_id: id })).verify(ctx, ctx.probed as Findings | null),
    moveApplicationDomain: async (_, { id, domain_id, input }, ctx) =>
      (await Domain.forUpdate(ctx, domain_id, { application_id: id })).moveTo(ctx, input),
    removeApplicationDomain: async (_, { id, domain_id }, ctx) => {
      await (await Domain.forUpdate(ctx, domain_id, { application_id: id })).remove(ctx);
      return true;
    },
  },
  Domain: {
    dns_instructions: (domain, _, ctx) => domain.instructions(ctx),
    application: (domain, _, ctx, info) => loadOne(Application, ctx, domain.project_id, domain.application_id, info),
  },
};

export const prepare: Record<string, Prepare> = {
  verifyApplicationDomain: ({ id, domain_id }, ctx) => Domain.probe(ctx, id as string, domain_id as string),
};

const CHILD = {
  kind: 'domain',
  parent: 'application',
  create: 'addApplicationDomain',
  delete: 'removeApplicationDomain',
  id: 'domain_id',
} as const;

export const revert: Record<string, Revert> = {
  addApplicationDomain: createdBack(CHILD),
  moveApplicationDomain: ({ operation, args: { domain_id }, changes }) => {
    const change = changes.find(({ id }) => id === domain_id);
    if (!change?.before || !change.after) return 'unchanged';
    const [from, to] = [change.after.application_id as string, change.before.application_id as string];
    return {
      calls: [{ operation, args: { id: from, domain_id, input: { application_id: to } } }],
      holds: [],
      expected: [{ kind: 'domain', by: { id: change.id }, values: { application_id: from } }],
    };
  },
  removeApplicationDomain: deletedBack(CHILD),
};
