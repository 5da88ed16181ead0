// The role of a person in a project, asked for by operations of the platform itself.
import type { Context, Identity, ProjectAccess, Role } from '../../core/context';
import { problem } from '../../core/errors';
import { projectAccess } from './identity';

const RANK: Record<Role, number> = { viewer: 0, developer: 1, owner: 2 };

/**
 * Selects a project in which the person has at least this role; the request acts on it from here on.
 * @throws project_not_found, role_not_permitted
 */
export async function requireRole(ctx: Context, projectId: string, least: Role): Promise<ProjectAccess> {
  const access = await projectAccess(ctx.sql, ctx.identity as Identity, projectId);
  if (!access) throw problem('project_not_found');
  if (RANK[access.role] < RANK[least]) throw problem('role_not_permitted', undefined, { required_role: least });
  ctx.project = access;
  return access;
}
