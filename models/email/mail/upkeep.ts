// Retention of mail: rows of finished messages, and files without a row.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';

const KEPT_DAYS = 30;
const BATCH = 1000;
const FINISHED = named(`delete from email_messages where id in (select id from email_messages
    where finished_at < now() - make_interval(days => ${KEPT_DAYS}) order by finished_at limit ${BATCH})
  returning file`);
const BEYOND = named(`delete from email_messages where id in (
    select id from email_messages m where exists (select 1 from email_deliveries d
      where d.message_id = m.id and d.status = 'kept') order by id desc offset $1 limit ${BATCH}) returning file`);
const NEEDED = named(`select file from email_messages m where file = any($1) and (finished_at is null
  or exists (select 1 from email_deliveries d where d.message_id = m.id and d.status = 'kept'))`);
const DAYS = named(`delete from email_days where day < now() - interval '7 days'`);

/** Deletes rows of messages that ended long ago. @returns their files */
export async function pruneMessages(sql: Sql): Promise<string[]> {
  await sql.query(DAYS, []);
  return (await sql.query<{ file: string | null }>(FINISHED, [])).flatMap(({ file }) => file ?? []);
}

/** Deletes the oldest messages of the sink and keeps the newest `kept`. @returns their files */
export async function pruneSink(sql: Sql, kept: number): Promise<string[]> {
  return (await sql.query<{ file: string | null }>(BEYOND, [kept])).flatMap(({ file }) => file ?? []);
}

/** Returns the files that no message needs. */
export async function filesWithoutMessage(sql: Sql, files: readonly string[]): Promise<string[]> {
  if (!files.length) return [];
  const needed = await sql.query<{ file: string }>(NEEDED, [[...files]]);
  const known = new Set(needed.map(({ file }) => file));
  return files.filter((file) => !known.has(file));
}
