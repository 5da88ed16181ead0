import { listPausedKeys, resumeKey } from '../../models/approvals/key_brake';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listPausedKeys: (_, args, ctx) => listPausedKeys(ctx, args),
  },
  Mutation: {
    resumeKey: (_, { id }, ctx) => resumeKey(ctx, id),
  },
};
