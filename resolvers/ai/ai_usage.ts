import { listAiUsage } from '../../models/ai/ai_usage';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listProjectAiUsage: (_, args, ctx) => listAiUsage(ctx, args),
  },
};
