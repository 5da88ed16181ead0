import * as catalog from '../../models/reference/catalog';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listRegions: (_, args, ctx) => catalog.regions(ctx, args),
    listApplicationTypes: (_, args, ctx) => catalog.applicationTypes(ctx, args),
    listBuildpackBuilders: (_, args, ctx) => catalog.buildpackBuilders(ctx, args),
    listPresets: (_, args, ctx) => catalog.presets(ctx, args),
    listDnsRecordTypes: (_, args, ctx) => catalog.dnsRecordTypes(ctx, args),
  },
};
