import { CheckResult } from '../../models/observers/check_result';
import { Observer, type CheckedNow } from '../../models/observers/observer';
import type { Resolvers } from '../types';
import type { Prepare } from '../index';

export const resolvers: Resolvers = {
  Query: {
    listObserverResults: async (_, args, ctx) => {
      await Observer.get(ctx, args.id);
      return CheckResult.list(ctx, args);
    },
  },
  Mutation: {
    checkObserver: async (_, { id }, ctx) =>
      (await Observer.forUpdate(ctx, id)).record(ctx, ctx.probed as CheckedNow | null),
  },
};

export const prepare: Record<string, Prepare> = {
  checkObserver: ({ id }, ctx) => Observer.probe(ctx, id as string),
};
