import * as catalog from '../../models/reference/catalog';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listDatabasePackages: (_, args, ctx) => catalog.databasePackages(ctx, args),
    listDatabasePackageAvailability: (_, args, ctx) => catalog.packageAvailability(ctx, args),
    listDatabaseEngines: (_, args, ctx) => catalog.databaseEngines(ctx, args),
  },
};
