import { metricsOfDatabase } from '../../models/applications/metric_point/database';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    getDatabaseMetrics: (_, args, ctx) => metricsOfDatabase(ctx, args),
  },
};
