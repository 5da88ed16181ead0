// The last lines that an instance printed.
import type { Sql } from '../../../core/context';
import type { LogLevel } from '../../../core/log/log_line';
import { named } from '../../../db/statement';

const FIND = named(`select message, level from log_lines
  where resource_id = $1 and instance_id = $2 and source = 'app' and step is null and at >= $4
  order by at desc, seq desc limit $3`);

/** Oldest first. `resourceId` is the application, or the preview that the instance belongs to; `since` a time. */
export async function findLastOutput(
  sql: Sql,
  resourceId: string,
  instanceId: string,
  limit: number,
  since = '-infinity',
): Promise<{ message: string; level: LogLevel }[]> {
  return (
    await sql.query<{ message: string; level: LogLevel }>(FIND, [resourceId, instanceId, limit, since])
  ).reverse();
}
