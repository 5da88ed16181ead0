// Names of resources by their ids, for people who read an id in an activity entry or in a field of another resource.
import type { Context } from '../../core/context';
import { isId } from '../../core/ids';
import { limits } from '../../core/limits';
import { tableOf } from '../../db/table';
import { allKinds } from './kinds';
import { loadOne } from './load';

export interface ResourceName {
  id: string;
  type: string;
  name: string | null;
  parent: ResourceName | null;
}

/** Columns that name a row, the first one that a kind has. */
const NAMES = ['name', 'hostname', 'username', 'command'];
/** Columns that say what a row belongs to, the first one that a kind has. */
const PARENTS = ['database_id', 'application_id', 'dns_zone_id', 'observer_id', 'bucket_id'];

/** Ids of other projects, and of what no longer exists, are left out. */
export async function resourceNames(ctx: Context, projectId: string, ids: readonly string[]): Promise<ResourceName[]> {
  const wanted = [...new Set(ids)].slice(0, limits.pageSizeMax);
  const found = await Promise.all(wanted.map((id) => nameOf(ctx, projectId, id)));
  return found.filter((one) => one !== null);
}

async function nameOf(ctx: Context, projectId: string, id: string): Promise<ResourceName | null> {
  const kind = allKinds().find(({ idPrefix }) => isId(idPrefix, id));
  if (!kind || !tableOf(ctx, kind.table).columns.includes('project_id')) return null;
  const row = (await loadOne(kind, ctx, projectId, id)) as Record<string, unknown> | null;
  if (!row) return null;
  const [name = null] = NAMES.flatMap((column) => (typeof row[column] === 'string' ? [row[column]] : []));
  const [above] = PARENTS.flatMap((column) => (typeof row[column] === 'string' ? [row[column]] : []));
  return {
    id,
    type: kind.kind,
    name: kind.kind === 'deployment' ? `#${String(row.number)}` : name,
    parent: above ? await nameOf(ctx, projectId, above) : null,
  };
}
