import { metricsOfDnsZone } from '../../models/applications/metric_point/dns_zone';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    getDnsZoneMetrics: (_, args, ctx) => metricsOfDnsZone(ctx, args),
  },
};
