import { getAiModel, listAiModels } from '../../models/ai/ai_model';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listAiModels: (_, args, ctx) => listAiModels(ctx, args),
    getAiModel: (_, { id }, ctx) => getAiModel(ctx, id),
  },
};
