import { fieldsBack, type Revert } from '../../contract/revert';
import { page } from '../../models/base/page';
import { Notifier } from '../../models/observers/notifier';
import type { NotifierTest } from '../../schema/types';
import type { Resolvers } from '../types';
import type { Prepare } from '../index';

export const resolvers: Resolvers = {
  Query: {
    listNotifiers: (_, args, ctx) => page(Notifier, ctx, args),
    getNotifier: (_, { id }, ctx) => Notifier.get(ctx, id),
  },
  Mutation: {
    createNotifier: (_, { input }, ctx) => Notifier.create(ctx, input),
    updateNotifier: async (_, { id, input }, ctx) => (await Notifier.forUpdate(ctx, id)).change(ctx, input),
    deleteNotifier: async (_, { id }, ctx) => {
      await (await Notifier.forUpdate(ctx, id)).destroy(ctx);
      return true;
    },
    testNotifier: async (_, { id }, ctx) =>
      (await Notifier.get(ctx, id)).tested(ctx, ctx.probed as NotifierTest | null),
  },
};

export const prepare: Record<string, Prepare> = {
  testNotifier: ({ id }, ctx) => Notifier.probe(ctx, id as string),
};

export const revert: Record<string, Revert> = {
  updateNotifier: fieldsBack({ secrets: ['config'] }),
};
