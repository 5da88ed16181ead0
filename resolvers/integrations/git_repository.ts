import {
  listBranches,
  listPullRequests,
  listRepositories,
  readRepository,
} from '../../models/integrations/git_integration/repositories';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listGitRepositories: (_, { id, ...args }, ctx) => listRepositories(ctx, id, args),
    getGitRepository: (_, { id, repository_id }, ctx) => readRepository(ctx, id, repository_id),
    listGitBranches: (_, { id, repository_id, ...args }, ctx) => listBranches(ctx, id, repository_id, args),
    listGitPullRequests: (_, { id, repository_id, ...args }, ctx) => listPullRequests(ctx, id, repository_id, args),
  },
};
