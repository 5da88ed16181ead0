import { fieldsBack, type Revert } from '../../contract/revert';
import { certificateOf } from '../../models/base/default_certificate';
import { page } from '../../models/base/page';
import { CdnZone } from '../../models/cdn/cdn_zone';
import { metricsOfCdnZone } from '../../models/cdn/cdn_zone/metrics';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listCdnZones: (_, args, ctx) => page(CdnZone, ctx, args),
    getCdnZone: (_, { id }, ctx) => CdnZone.get(ctx, id),
    getCdnZoneMetrics: (_, args, ctx) => metricsOfCdnZone(ctx, args),
  },
  Mutation: {
    createCdnZone: (_, { input }, ctx) => CdnZone.create(ctx, input),
    updateCdnZone: async (_, { id, input }, ctx) => (await CdnZone.forUpdate(ctx, id)).change(ctx, input),
    deleteCdnZone: async (_, { id }, ctx) => {
      await (await CdnZone.forUpdate(ctx, id)).destroy(ctx);
      return true;
    },
  },
  CdnZone: {
    certificate: (zone, _, ctx) => certificateOf(ctx, zone.hostname),
  },
};

export const revert: Record<string, Revert> = {
  updateCdnZone: fieldsBack(),
};
