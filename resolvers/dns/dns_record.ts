import type { Revert } from '../../contract/revert';
import { recordsBack } from '../../contract/dns_records_back';
import { page } from '../../models/base/page';
import { DnsRecord } from '../../models/dns/dns_record';
import {
  batchRecords,
  createRecord,
  deleteRecord,
  replaceRecords,
  updateRecord,
} from '../../models/dns/dns_record/verbs';
import { DnsZone } from '../../models/dns/dns_zone';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listDnsRecords: async (_, { id, ...args }, ctx) => {
      await DnsZone.get(ctx, id);
      return page(DnsRecord, ctx, args, { dns_zone_id: id });
    },
    getDnsRecord: async (_, { id, record_id }, ctx) => {
      await DnsZone.get(ctx, id);
      return DnsRecord.get(ctx, record_id, { dns_zone_id: id });
    },
  },
  Mutation: {
    createDnsRecord: async (_, { id, input }, ctx) => createRecord(ctx, await DnsZone.held(ctx, id), input),
    replaceDnsRecords: async (_, { id, input }, ctx) => ({
      records: await replaceRecords(ctx, await DnsZone.forUpdate(ctx, id), input),
    }),
    batchDnsRecords: async (_, { id, input }, ctx) => batchRecords(ctx, await DnsZone.held(ctx, id), input),
    updateDnsRecord: async (_, { id, record_id, input }, ctx) => {
      const zone = await DnsZone.held(ctx, id);
      return updateRecord(ctx, zone, await DnsRecord.forUpdate(ctx, record_id, { dns_zone_id: id }), input);
    },
    deleteDnsRecord: async (_, { id, record_id }, ctx) => {
      const zone = await DnsZone.held(ctx, id);
      await deleteRecord(ctx, zone, await DnsRecord.forUpdate(ctx, record_id, { dns_zone_id: id }));
      return true;
    },
  },
  DnsRecord: {
    fqdn: (record, _, ctx) => record.fqdn(ctx),
  },
};

export const revert: Record<string, Revert> = {
  createDnsRecord: recordsBack,
  replaceDnsRecords: recordsBack,
  batchDnsRecords: recordsBack,
  updateDnsRecord: recordsBack,
  deleteDnsRecord: recordsBack,
};
