// What the job of a database reads and writes of its extensions.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';

const WANTED = named(`select name, status from database_extensions where database_id = $1
  and (status in ('enabling', 'disabling') or ($2 and status = 'enabled')) order by name`);
const PRELOADED = named(`select name from database_extensions
  where database_id = $1 and name = any($2) and status <> 'failed' order by name`);
const ENABLED = named(`update database_extensions set status = 'enabled', version = $4, status_reason = null
  where database_id = $1 and name = $2 and status = $3`);
const DISABLED = named('delete from database_extensions where database_id = $1 and name = $2 and status = $3');
const FAILED = named(`update database_extensions set status_reason = $4,
    status = case status when 'disabling' then 'enabled' else 'failed' end
  where database_id = $1 and name = $2 and status = $3`);

export interface WantedExtension {
  name: string;
  status: 'enabling' | 'enabled' | 'disabling';
}

/** Those that the server has not yet; with `all`, those that it may have lost, too. */
export function wantedExtensions(sql: Sql, databaseId: string, all: boolean): Promise<WantedExtension[]> {
  return sql.query<WantedExtension>(WANTED, [databaseId, all]);
}

/** Which of the libraries the server of a database has to load. */
export async function preloadedExtensions(sql: Sql, databaseId: string, names: ReadonlySet<string>): Promise<string[]> {
  return (await sql.query<{ name: string }>(PRELOADED, [databaseId, [...names]])).map(({ name }) => name);
}

/** What became of one, unless something else is wanted by now. */
export async function recordExtension(
  sql: Sql,
  databaseId: string,
  { name, status }: WantedExtension,
  result: { version: string | null } | { failure: string },
): Promise<void> {
  if ('failure' in result) await sql.query(FAILED, [databaseId, name, status, result.failure]);
  else if (status === 'disabling') await sql.query(DISABLED, [databaseId, name, status]);
  else await sql.query(ENABLED, [databaseId, name, status, result.version]);
}
