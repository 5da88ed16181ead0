// Which registry of a project an image is in.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';

const FIND = named('select id from registries where project_id = $1 and name = $2 and deleted_at is null');

/** @param repository `acme/shop/web` is in the registry `acme`. @returns null for a registry of another project */
export async function registryOfImage(sql: Sql, projectId: string, repository: string): Promise<string | null> {
  const [name = ''] = repository.split('/');
  const [row] = await sql.query<{ id: string }>(FIND, [projectId, name]);
  return row?.id ?? null;
}

const OF_PROJECT = named('select name from registries where project_id = $1 and deleted_at is null order by name');

export async function registryNames(sql: Sql, projectId: string): Promise<string[]> {
  return (await sql.query<{ name: string }>(OF_PROJECT, [projectId])).map(({ name }) => name);
}
