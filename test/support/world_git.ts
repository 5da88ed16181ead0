// What the world of test/support/world.ts knows of Git integrations.

/** Reads that a provider or a remote answers: test/git_integration.test.ts and its neighbours have them. */
export const FROM_PROVIDERS = [
  'getGitRepository',
  'listGitRepositories',
  'listGitBranches',
  'listGitPullRequests',
  'listSharedRepositoryBranches',
];

/** Its last parameter is a project, and names a share. */
export const SHARE_PATH = '/v2/shared_repositories/{id}/projects/{projectId}';
