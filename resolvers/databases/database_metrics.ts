import { metricsOfDatabase } from '../../models/databases/database/metrics';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    getDatabaseMetrics: (_, args, ctx) => metricsOfDatabase(ctx, args),
  },
};
