import { billingSummary } from '../../models/projects/billing';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    billingSummary: (_, __, ctx) => billingSummary(ctx),
  },
};
