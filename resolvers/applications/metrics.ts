import { metricsOfApplication } from '../../models/applications/metric_point/application';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    getApplicationMetrics: (_, args, ctx) => metricsOfApplication(ctx, args),
  },
};
