// Which registry of a project an image is in.
import type { Sql } from '../../core/context';
import { named } from '../../db/statement';

const FIND = named('select id from registries where project_id = $1 and name = $2 and deleted_at is null');

/** @param repository `acme/shop/web` is in the registry `acme`. @returns null for that of another project */
export async function registryOfImage(sql: Sql, projectId: string, repository: string): Promise<string | null> {
  const [name = ''] = repository.split('/');
  const [row] = await sql.query<{ id: string }>(FIND, [projectId, name]);
  return row?.id ?? null;
}
