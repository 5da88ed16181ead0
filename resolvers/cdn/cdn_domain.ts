import { createdBack, deletedBack, type Revert } from '../../contract/revert';
import { page } from '../../models/base/page';
import { CdnDomain } from '../../models/cdn/cdn_domain';
import { CdnZone } from '../../models/cdn/cdn_zone';
import type { Findings } from '../../models/domains/domain/instructions';
import type { Resolvers } from '../types';
import type { Prepare } from '../index';

export const resolvers: Resolvers = {
  Query: {
    listCdnDomains: async (_, { id, ...args }, ctx) => {
      await CdnZone.get(ctx, id);
      return page(CdnDomain, ctx, args, { cdn_zone_id: id });
    },
    getCdnDomain: async (_, { id, domain_id }, ctx) => {
      await CdnZone.get(ctx, id);
      return CdnDomain.get(ctx, domain_id, { cdn_zone_id: id });
    },
  },
  Mutation: {
    addCdnDomain: async (_, { id, input }, ctx) => CdnDomain.addTo(ctx, await CdnZone.held(ctx, id), input),
    verifyCdnDomain: async (_, { id, domain_id }, ctx) =>
      (await CdnDomain.forUpdate(ctx, domain_id, { cdn_zone_id: id })).verify(ctx, ctx.probed as Findings | null),
    removeCdnDomain: async (_, { id, domain_id }, ctx) => {
      await (await CdnDomain.forUpdate(ctx, domain_id, { cdn_zone_id: id })).remove(ctx);
      return true;
    },
  },
  CdnDomain: {
    dns_instructions: (domain, _, ctx) => domain.instructions(ctx),
  },
};

export const prepare: Record<string, Prepare> = {
  verifyCdnDomain: ({ id, domain_id }, ctx) => CdnDomain.probeOf(ctx, id as string, domain_id as string),
};

const CHILD = {
  kind: 'cdn_domain',
  parent: 'cdn_zone',
  create: 'addCdnDomain',
  delete: 'removeCdnDomain',
  id: 'domain_id',
} as const;

export const revert: Record<string, Revert> = {
  addCdnDomain: createdBack(CHILD),
  removeCdnDomain: deletedBack(CHILD),
};
