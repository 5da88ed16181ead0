import { fieldsBack, type Revert } from '../../contract/revert';
import { recordsBack } from '../../contract/dns_records_back';
import { DnsZone } from '../../models/dns/dns_zone';
import { page } from '../../models/base/page';
import type { DelegationFindings } from '../../models/dns/dns_zone/delegation';
import { exportZone, importZone } from '../../models/dns/dns_zone/import';
import { addScanned, scanZone, type Scanned } from '../../models/dns/dns_zone/scan';
import type { Resolvers } from '../types';
import type { Prepare } from '../index';

export const resolvers: Resolvers = {
  Query: {
    listDnsZones: (_, args, ctx) => page(DnsZone, ctx, args),
    getDnsZone: (_, { id }, ctx) => DnsZone.get(ctx, id),
    exportDnsZone: async (_, { id }, ctx) => exportZone(ctx, await DnsZone.get(ctx, id)),
  },
  Mutation: {
    createDnsZone: (_, { input }, ctx) => DnsZone.create(ctx, input),
    updateDnsZone: async (_, { id, input }, ctx) => (await DnsZone.forUpdate(ctx, id)).change(ctx, input),
    deleteDnsZone: async (_, { id }, ctx) => {
      await (await DnsZone.forUpdate(ctx, id)).destroy(ctx);
      return true;
    },
    verifyDnsZone: async (_, { id }, ctx) =>
      (await DnsZone.forUpdate(ctx, id)).verify(ctx, ctx.probed as DelegationFindings | null),
    scanDnsZone: async (_, { id }, ctx) =>
      addScanned(ctx, await DnsZone.forUpdate(ctx, id), ctx.probed as Scanned | null),
    importDnsZone: async (_, { id, input }, ctx) => importZone(ctx, await DnsZone.forUpdate(ctx, id), input),
  },
};

export const prepare: Record<string, Prepare> = {
  verifyDnsZone: ({ id }, ctx) => DnsZone.probe(ctx, id as string),
  scanDnsZone: ({ id }, ctx) => scanZone(ctx, id as string),
};

export const revert: Record<string, Revert> = {
  updateDnsZone: fieldsBack(),
  scanDnsZone: recordsBack,
  importDnsZone: recordsBack,
};
