import { Incident } from '../../models/observers/incident';
import { Observer } from '../../models/observers/observer';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listObserverIncidents: async (_, args, ctx) => {
      await Observer.get(ctx, args.id);
      return Incident.list(ctx, args);
    },
  },
  Incident: {
    notifications: (incident, _, ctx) => incident.notifications(ctx),
  },
};
