import { billingSummary } from '../models/billing';
import type { Resolvers } from '../schema/types';

export const resolvers: Resolvers = {
  Query: {
    billingSummary: (_, __, ctx) => billingSummary(ctx),
  },
};
