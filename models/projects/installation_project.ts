// Projects of the installation, for its operators: their size, and nothing of what is in them.
import type { Context } from '../../core/context';
import type { DiskUse } from '../../core/catalog/installation_reports';
import { loadReports } from '../base/installation_report';
import type { Page } from '../base/page';
import { newest, type NewestArguments } from '../base/row';
import { containing } from '../identity/installation_user';
import { requireOperator } from '../identity/operator';

export interface InstallationProject {
  id: string;
  name: string;
  owners: string[];
  members: number;
  applications: number;
  databases: number;
  disk_bytes: number | null;
  last_activity_at: string | null;
  created_at: string;
}

const PROJECTS = `select p.id, p.name,
    array(select u.email from members m join users u on u.id = m.user_id
      where m.project_id = p.id and m.role = 'owner' order by u.email limit 5) as owners,
    (select count(*)::int from members m where m.project_id = p.id) as members,
    (select count(*)::int from applications a where a.project_id = p.id and a.deleted_at is null) as applications,
    (select count(*)::int from databases d where d.project_id = p.id and d.deleted_at is null) as databases,
    (select a.created_at from activity a where a.project_id = p.id order by a.id desc limit 1) as last_activity_at,
    p.created_at
  from projects p where p.deleted_at is null`;

/** @throws role_not_permitted, invalid_cursor */
export async function listInstallationProjects(
  ctx: Context,
  { search, ...args }: NewestArguments & { search?: string | null },
): Promise<Page<InstallationProject>> {
  await requireOperator(ctx);
  const words = search?.trim() ?? '';
  const [found, values] = words === '' ? ['', []] : [' and (p.id = $1 or p.name ilike $2)', [words, containing(words)]];
  const page = await newest<InstallationProject>(ctx, args, {
    ...{ text: PROJECTS + found, values, id: 'p.id' },
    idOf: ({ id }) => id,
  });
  const used = await diskUseByProject(ctx);
  return { ...page, data: page.data.map((project) => ({ ...project, disk_bytes: used.get(project.id) ?? null })) };
}

/** On all machines. */
async function diskUseByProject(ctx: Context): Promise<Map<string, number>> {
  const used = new Map<string, number>();
  for (const { facts } of await loadReports<DiskUse>(ctx.sql, 'disk use'))
    for (const { id, bytes } of facts.projects) used.set(id, (used.get(id) ?? 0) + bytes);
  return used;
}
