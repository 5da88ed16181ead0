import {
  cleanBuildCaches,
  loadBackups,
  loadDiskUse,
  loadMachine,
  loadProcesses,
} from '../../models/identity/installation_machine';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    installationMachine: (_, __, ctx) => loadMachine(ctx),
    installationDiskUse: (_, __, ctx) => loadDiskUse(ctx),
    installationProcesses: (_, __, ctx) => loadProcesses(ctx),
    installationBackups: (_, __, ctx) => loadBackups(ctx),
  },
  Mutation: {
    cleanBuildCaches: (_, { machine }, ctx) => cleanBuildCaches(ctx, machine),
  },
};
