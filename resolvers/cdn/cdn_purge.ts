import { page } from '../../models/base/page';
import { CdnPurge } from '../../models/cdn/cdn_purge';
import { CdnZone } from '../../models/cdn/cdn_zone';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listCdnPurges: async (_, { id, ...args }, ctx) => {
      await CdnZone.get(ctx, id);
      return page(CdnPurge, ctx, args, { cdn_zone_id: id });
    },
    getCdnPurge: async (_, { id, purge_id }, ctx) => {
      await CdnZone.get(ctx, id);
      return CdnPurge.get(ctx, purge_id, { cdn_zone_id: id });
    },
  },
  Mutation: {
    createCdnPurge: async (_, { id, input }, ctx) => CdnPurge.create(ctx, await CdnZone.held(ctx, id), input),
  },
};
