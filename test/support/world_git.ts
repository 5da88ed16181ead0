// What the world of test/support/world.ts knows of Git integrations.
import type { World } from './world';

/**
 * Reads that a provider or a remote answers: test/integrations/git_integration.test.ts and its neighbours have them.
 */
export const FROM_PROVIDERS = [
  'getGitRepository',
  'listGitRepositories',
  'listGitBranches',
  'listGitPullRequests',
  'listSharedRepositoryBranches',
];

/** Its last parameter is a project, and names a share. */
export const SHARE_PATH = '/v2/shared_repositories/{id}/projects/{projectId}';

export const gitMakers = {
  /** Nobody was asked for it: the integrations of a world are pending. */
  git_repository: () => Promise.resolve('1296269'),
  /** Addressed by the other project. */
  async shared_repository_project(world: World): Promise<string> {
    const { id } = await world.service.newProject();
    await world.service.sql(
      'insert into shared_repository_projects (shared_repository_id, project_id) values ($1, $2)',
      [await world.id('shared_repository'), id],
    );
    return id;
  },
};
