import { DnsZone } from '../../models/dns/dns_zone';
import { disableDnssec, dnssecOf, enableDnssec, rotateKey } from '../../models/dns/dns_zone/dnssec';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    getDnssec: async (_, { id }, ctx) => {
      const zone = await DnsZone.get(ctx, id);
      ctx.reply.etag = zone.etag;
      return dnssecOf(ctx, zone);
    },
  },
  Mutation: {
    enableDnssec: async (_, { id }, ctx) => enableDnssec(ctx, await DnsZone.forUpdate(ctx, id)),
    disableDnssec: async (_, { id }, ctx) => {
      await disableDnssec(ctx, await DnsZone.forUpdate(ctx, id));
      return true;
    },
    rotateDnssecKey: async (_, { id }, ctx) => rotateKey(ctx, await DnsZone.forUpdate(ctx, id)),
  },
};
