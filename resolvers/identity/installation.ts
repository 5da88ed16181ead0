import { loadInstallation } from '../../models/identity/installation';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    installation: (_, __, ctx) => loadInstallation(ctx),
  },
};
