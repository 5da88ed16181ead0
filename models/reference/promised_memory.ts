import type { Sql } from '../../core/context';
import { named } from '../../db/statement';

const PROMISED = named(`select coalesce(sum((r.processes -> p.type ->> 'memory_mb')::float8 * p.instances), 0)::float8
    as memory_mb
  from processes p join applications a on a.id = p.application_id and a.deleted_at is null and a.status <> 'stopped'
  join releases r on r.id = p.release_id where p.instances > 0`);

/** Megabytes that the instances of all applications may take. Those that are stopped take none. */
export async function promisedMemory(sql: Pick<Sql, 'query'>): Promise<number> {
  return (await sql.query<{ memory_mb: number }>(PROMISED, []))[0]?.memory_mb ?? 0;
}
