// Projects that a repository is shared with.
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import { isId } from '../../../core/ids';
import type { SharedRepositoryProject } from '../../../schema/types';
import { named } from '../../../db/statement';
import type { Page } from '../../base/page';
import { newest, type NewestArguments } from '../../base/row';
import { usersOfShared } from '../git_integration/dependents';
import type { SharedRepository } from '../shared_repository';

const ROWS = `select s.project_id, p.name as project_name, s.created_at from shared_repository_projects s
  join projects p on p.id = s.project_id and p.deleted_at is null where s.shared_repository_id = $1`;

/** One page, newest project first. A project other than the owner sees only itself in the list. */
export function listShares(
  ctx: Context,
  repository: SharedRepository,
  args: NewestArguments,
): Promise<Page<SharedRepositoryProject>> {
  const isOwner = repository.access_level !== 'shared';
  return newest<SharedRepositoryProject>(ctx, args, {
    text: isOwner ? ROWS : `${ROWS} and s.project_id = $2`,
    values: isOwner ? [repository.id] : [repository.id, ctx.project?.id],
    id: 's.project_id',
    idOf: ({ project_id }) => project_id,
  });
}

const ADD = named(`insert into shared_repository_projects (shared_repository_id, project_id) values ($1, $2)
  on conflict do nothing returning created_at`);

/** The caller holds the repository. @throws reference_not_found, already_exists */
export async function addShare(
  ctx: Context,
  repository: SharedRepository,
  projectId: string,
): Promise<SharedRepositoryProject> {
  const project = isReachable(ctx, projectId) ? await ctx.access(projectId) : null;
  if (!project)
    throw problem('reference_not_found', 'project_id names no project that you can reach.', { field: 'project_id' });
  if (projectId === repository.project_id)
    throw problem('reference_not_found', 'project_id names the project that owns the repository.', {
      field: 'project_id',
    });
  const [added] = await ctx.sql.query<{ created_at: string }>(ADD, [repository.id, projectId]);
  if (!added)
    throw problem('already_exists', 'The repository is shared with this project already.', { resource_id: projectId });
  note(ctx, repository);
  return { project_id: projectId, project_name: project.name, created_at: added.created_at };
}

const REMOVE = named(
  'delete from shared_repository_projects where shared_repository_id = $1 and project_id = $2 returning project_id',
);

/** The caller holds the repository. @throws not_found, resource_in_use */
export async function removeShare(ctx: Context, repository: SharedRepository, projectId: string): Promise<void> {
  const removed = await ctx.sql.query(REMOVE, [repository.id, projectId]);
  if (!removed.length) throw problem('not_found', 'The repository is not shared with this project.');
  const dependents = await usersOfShared(ctx, repository.id, projectId);
  if (dependents.length)
    throw problem('resource_in_use', 'Applications of the project use the repository.', { dependents });
  note(ctx, repository);
}

function isReachable({ identity }: Context, projectId: string): boolean {
  if (!isId('prj', projectId)) return false;
  const limited = identity?.project_ids ?? null;
  return limited === null || limited.includes(projectId);
}

function note(ctx: Context, { id, name, project_id, etag }: SharedRepository): void {
  ctx.activity.resource = { type: 'shared_repository', id, name, project_id };
  ctx.reply.etag = etag;
}
