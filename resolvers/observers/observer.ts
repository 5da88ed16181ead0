import { fieldsBack, type Revert } from '../../contract/revert';
import { page } from '../../models/base/page';
import { Observer } from '../../models/observers/observer';
import { uptimePercent } from '../../models/observers/observer/uptime_percent';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listObservers: (_, args, ctx) => page(Observer, ctx, args),
    getObserver: (_, { id }, ctx) => Observer.get(ctx, id),
  },
  Mutation: {
    createObserver: (_, { input }, ctx) => Observer.create(ctx, input),
    updateObserver: async (_, { id, input }, ctx) => (await Observer.forUpdate(ctx, id)).change(ctx, input),
    deleteObserver: async (_, { id }, ctx) => {
      await (await Observer.forUpdate(ctx, id)).destroy(ctx);
      return true;
    },
  },
  Observer: {
    uptime_percent_30d: (observer, _, ctx) => uptimePercent(ctx, observer),
  },
};

export const revert: Record<string, Revert> = {
  updateObserver: fieldsBack({ secrets: ['uptime.headers'] }),
};
