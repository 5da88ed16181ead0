// Projects that a cluster has a namespace for.
import type { Sql } from '../../core/context';
import { named } from '../../db/statement';

const DELETED = named(`select id from unnest($1::text[]) as known (id)
  where not exists (select 1 from projects p where p.id = known.id and p.deleted_at is null)`);

/** Those of the ids that are no project any more. */
export async function deletedProjects(sql: Sql, ids: readonly string[]): Promise<string[]> {
  if (!ids.length) return [];
  return (await sql.query<{ id: string }>(DELETED, [ids])).map(({ id }) => id);
}
