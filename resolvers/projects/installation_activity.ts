import { listInstallationActivity, orderExport } from '../../models/projects/installation_activity';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listInstallationActivity: (_, args, ctx) => listInstallationActivity(ctx, args),
  },
  Mutation: {
    exportInstallationActivity: (_, args, ctx) => orderExport(ctx, args),
  },
};
