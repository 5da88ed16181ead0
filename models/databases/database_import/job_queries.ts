// What the job of imports and the receiver of their files read and write beside their own rows.
import type { Sql } from '../../../core/context';
import { problem } from '../../../core/errors';
import { wakeRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';

const CANCELED = named(`select cancel_requested_at is not null or deleted_at is not null as canceled
  from database_imports where id = $1`);
const SLOT = named('select source_slot from database_imports where id = $1');
const AWAITING = named(`select i.bytes_max from database_imports i join databases d on d.id = i.database_id
  where i.id = $1 and i.status = 'awaiting_upload' and i.deleted_at is null and d.deleted_at is null`);
const RECEIVED = named(`update database_imports set status = 'pending', size_bytes = $2, version = version + 1,
    updated_at = greatest(now(), updated_at), deadline_at = null
  where id = $1 and status = 'awaiting_upload' and deleted_at is null returning id`);
const ENABLED = named(`insert into database_extensions (database_id, name, status, version)
  values ($1, $2, 'enabled', $3) on conflict (database_id, name) do update set status = 'enabled', version = $3,
    status_reason = null`);
const ALIVE = named(`select id from database_imports where id = any($1) and deleted_at is null
  and status in ('awaiting_upload', 'pending', 'running')`);

/** Whether its owner wants no more of it. */
export async function isImportCanceled(sql: Sql, id: string): Promise<boolean> {
  const [row] = await sql.query<{ canceled: boolean }>(CANCELED, [id]);
  return row?.canceled ?? true;
}

/** Name of what may be at the source of an import; null: nothing is. */
export async function findSourceSlot(sql: Sql, id: string): Promise<string | null> {
  const [row] = await sql.query<{ source_slot: string | null }>(SLOT, [id]);
  return row?.source_slot ?? null;
}

/** The import whose file may be sent now, and its largest size. @throws not_found */
export async function importAwaitingFile(sql: Sql, id: string): Promise<{ bytes_max: number }> {
  const [row] = await sql.query<{ bytes_max: number }>(AWAITING, [id]);
  if (!row) throw problem('not_found', 'The import does not wait for a file. Create another one.');
  return { bytes_max: Number(row.bytes_max) };
}

/** The file is complete. @throws not_found where the import has ended meanwhile */
export async function importReceived(sql: Sql, id: string, bytes: number): Promise<void> {
  const rows = await sql.query(RECEIVED, [id, bytes]);
  if (!rows.length) throw problem('not_found', 'The import does not wait for a file any more.');
  // Not only due: a step that waits for the file may be under way, and would sleep on.
  await wakeRows(sql, { table: 'database_imports', where: 'id = $1', values: [id] });
}

/** Extensions that an import has created: the database keeps them over a restore. */
export async function recordExtensions(
  sql: Sql,
  databaseId: string,
  extensions: readonly { name: string; version: string }[],
): Promise<void> {
  for (const { name, version } of extensions) await sql.query(ENABLED, [databaseId, name, version]);
}

/** Which of these have files that are still needed. */
export async function unfinishedImports(sql: Sql, ids: readonly string[]): Promise<Set<string>> {
  return new Set((await sql.query<{ id: string }>(ALIVE, [ids])).map(({ id }) => id));
}
