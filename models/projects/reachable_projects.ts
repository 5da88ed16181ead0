// The projects that a caller can reach.
import type { Context, Identity } from '../../core/context';
import { page, type Page, type PageArguments, type Source } from '../base/page';
import { Project } from './project';

/** One page of them: a person's memberships (within the key's restriction), or the one project of a project key. */
export function reachableProjects(ctx: Context, args: PageArguments): Promise<Page<Project>> {
  return page(Project, ctx, args, {}, sourceOf(ctx.identity as Identity));
}

const COLUMNS = `id, account_id, name, description, default_region, deletion_protection, role, approval_required_for,
  version, created_at, updated_at`;

function sourceOf({ user, project_id, project_ids }: Identity): Source {
  if (!user) {
    const from =
      '(select p.*, null::text as role from projects p where p.id = :id and p.deleted_at is null) as reachable';
    return { from, columns: COLUMNS, values: { id: project_id } };
  }
  const from = `(select p.*, m.role from projects p join members m on m.project_id = p.id
    where m.user_id = :user and p.deleted_at is null and (:ids::text[] is null or p.id = any(:ids))) as reachable`;
  return { from, columns: COLUMNS, values: { user: user.id, ids: project_ids } };
}
