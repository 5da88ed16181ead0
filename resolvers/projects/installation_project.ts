import { listInstallationProjects } from '../../models/projects/installation_project';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listInstallationProjects: (_, args, ctx) => listInstallationProjects(ctx, args),
  },
};
