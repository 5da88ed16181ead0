// What the job of backups and its schedule read and write beside their own rows.
import { limits } from '../../../core/limits';
import type { Sql } from '../../../core/context';
import { mintId, timeOfId } from '../../../core/ids';
import { tearDownRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import { isKept } from '../../base/bin';

const OWNER = named('select * from databases where id = $1');

/** The database that a backup is of, with every column, in tear-down too. */
export async function findDatabase<Row>(sql: Sql, databaseId: string): Promise<Row | null> {
  const [row] = await sql.query<Row>(OWNER, [databaseId]);
  return row ?? null;
}

/** When the last backup of the schedule should have been taken: the last time that it was this hour. */
const DUE_AT = `date_trunc('day', now() at time zone 'utc') at time zone 'utc'
  + make_interval(hours => (d.backup_schedule ->> 'hour_utc')::int)
  - case when date_part('hour', now() at time zone 'utc') < (d.backup_schedule ->> 'hour_utc')::int
    then interval '1 day' else interval '0' end`;
/** What its job has found (jobs/databases/database/missing_data.ts). */
const HAS_DATA = `d.observed -> 'data_missing' is distinct from 'true'::jsonb`;
// A database has its first one soon after it was made, and after an upgrade, over which older ones do not lead back:
// without one it can't be restored at all.
const IS_FIRST = `not exists (select 1 from database_backups b where b.database_id = d.id
  and b.engine_version = d.engine_version)`;
const DUE = named(`select d.id, d.project_id, d.engine, d.engine_version,
    (d.backup_schedule ->> 'retention_days')::int as retention_days from databases d
  where d.deleted_at is null and d.status = 'available' and ${HAS_DATA} and (d.backup_schedule ->> 'enabled')::boolean
    and d.created_at < now() - make_interval(mins => $1)
    and not exists (select 1 from database_backups b where b.database_id = d.id and b.deleted_at is null
      and b.status in ('pending', 'running'))
    and (${IS_FIRST} or d.created_at < ${DUE_AT} and not exists (select 1 from database_backups b
      where b.database_id = d.id and b.type = 'scheduled' and b.created_at >= ${DUE_AT}))
  order by d.id limit $2`);
const INSERT =
  named(`insert into database_backups (id, project_id, database_id, type, engine_version, expires_at, status,
    created_at, updated_at)
  values ($1, $2, $3, 'scheduled', $4, $5::timestamptz + make_interval(days => $6), 'pending', $5, $5)`);

interface DueDatabase {
  id: string;
  project_id: string;
  engine: string;
  engine_version: string;
  retention_days: number;
}

/** Makes the rows of backups whose hour has come. @returns how many */
export async function scheduleBackups(sql: Sql, batch: number): Promise<number> {
  const due = await sql.query<DueDatabase>(DUE, [limits.firstBackupMinutes, batch]);
  for (const database of due) await insertScheduled(sql, database);
  if (due.length) sql.due('database_backups');
  return due.length;
}

async function insertScheduled(sql: Sql, database: DueDatabase): Promise<void> {
  const { id: databaseId, project_id, engine_version, retention_days } = database;
  const id = mintId('bkp');
  await sql.query(INSERT, [id, project_id, databaseId, engine_version, timeOfId(id).toISOString(), retention_days]);
}

const BACKED_UP = named(`select d.id, d.project_id, d.engine, d.engine_version,
    least((d.backup_schedule ->> 'retention_days')::int, 2) as retention_days from databases d
  where d.deleted_at is null and d.status = 'available' and ${HAS_DATA} and (d.backup_schedule ->> 'enabled')::boolean
    and not exists (select 1 from database_backups b where b.database_id = d.id and b.deleted_at is null
      and b.status in ('pending', 'running'))
  order by d.id`);
const UNFINISHED = named(`select count(*)::int as count from database_backups
  where status in ('pending', 'running') and deleted_at is null`);

/** Makes the rows of backups of all databases, for a backup of the installation. */
export async function backUpAllDatabases(sql: Sql): Promise<void> {
  for (const database of await sql.query<DueDatabase>(BACKED_UP, [])) await insertScheduled(sql, database);
  sql.due('database_backups');
}

export async function countUnfinishedBackups(sql: Sql): Promise<number> {
  return (await sql.query<{ count: number }>(UNFINISHED, []))[0]?.count ?? 0;
}

// Expired backups of a database whose data are lost stay: they are the last copy. So does the last one that is whole of
// a database in the bin, of which a purge leaves nothing else.
const EXPIRED = `id in (select b.id from database_backups b left join databases d on d.id = b.database_id
  where b.expires_at < now() and b.deleted_at is null and b.status in ('completed', 'failed')
    and (d.deleted_at is not null or ${HAS_DATA}) and not (d.deleted_at is not null and ${isKept('d')}
      and b.id = (select id from database_backups where database_id = d.id and status = 'completed'
        and deleted_at is null order by id desc limit 1)) order by b.expires_at limit $1)`;

/** Takes backups away whose time is over. @returns how many */
export async function expireBackups(sql: Sql, batch: number): Promise<number> {
  return (await tearDownRows(sql, { table: 'database_backups', where: EXPIRED, values: [batch] })).length;
}
