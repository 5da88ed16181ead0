import type { Revert } from '../../contract/revert';
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

/** It is signed again, with the same keys. */
const signedBack: Revert = ({ changes, args }) => {
  const [zone] = changes.filter(({ kind }) => kind === DnsZone.kind);
  if (!zone?.before || zone.before.dnssec_status === 'disabled') return 'unchanged';
  const by = { id: args.id };
  return {
    calls: [{ operation: 'enableDnssec', args: by }],
    holds: [],
    expected: [{ kind: DnsZone.kind, by, values: { dnssec_status: 'disabled' } }],
  };
};

/** It is signed no more. The keys stay aside. */
const unsignedBack: Revert = ({ changes, args }) => {
  const [zone] = changes.filter(({ kind }) => kind === DnsZone.kind);
  if (!zone?.before || zone.before.dnssec_status !== 'disabled') return 'unchanged';
  const by = { id: args.id };
  return { calls: [{ operation: 'disableDnssec', args: by }], holds: [], expected: [] };
};

export const revert: Record<string, Revert> = { enableDnssec: unsignedBack, disableDnssec: signedBack };
