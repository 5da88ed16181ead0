// What the jobs of volumes and backups, and the schedules, read and write beside their own rows.
import type { Context, Sql } from '../../../core/context';
import { mintId, timeOfId } from '../../../core/ids';
import { nextDue } from '../../../core/protocols/cron';
import { makeRowsDue, tearDownRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import { sealedPassphrase } from './passphrase';

const VOLUME = named('select * from volumes where id = $1');
const BACKUP = named('select id, volume_id, passphrase, content_bytes from volume_backups where id = $1');

/** The volume that a backup is of, with every column, in tear-down too. */
export async function findBackedUpVolume<Row>(sql: Sql, volumeId: string): Promise<Row | null> {
  return (await sql.query<Row>(VOLUME, [volumeId]))[0] ?? null;
}

export interface BackupToRestore {
  id: string;
  volume_id: string;
  /** Sealed. */
  passphrase: string;
  content_bytes: number | null;
}

export async function findBackupToRestore(sql: Sql, id: string): Promise<BackupToRestore | null> {
  return (await sql.query<BackupToRestore>(BACKUP, [id]))[0] ?? null;
}

const DUE = named(`select v.id, v.project_id, v.size_gb, v.backup_schedule, v.backup_retention_days,
    v.status in ('available', 'in_use') and not exists (select 1 from volume_backups b where b.volume_id = v.id
      and b.deleted_at is null and b.status in ('pending', 'running')) as is_ready
  from volumes v where v.next_backup_at <= now() and v.deleted_at is null
  order by v.next_backup_at limit $1 for update of v skip locked`);
const NEXT = named('update volumes set next_backup_at = $2 where id = $1');
const INSERT = named(`insert into volume_backups (id, project_id, volume_id, type, volume_size_gb, passphrase,
    expires_at, status, created_at, updated_at)
  values ($1, $2, $3, 'scheduled', $4, $5, $6::timestamptz + make_interval(days => $7), 'pending', $6, $6)`);

interface DueVolume {
  id: string;
  project_id: string;
  size_gb: number;
  backup_schedule: string;
  backup_retention_days: number;
  /** Else this time is left out: it is being made, or backed up still. */
  is_ready: boolean;
}

/** Makes the rows of backups whose time has come. Times that passed meanwhile are one. @returns how many were due */
export async function scheduleVolumeBackups(
  { sql, secrets }: Pick<Context, 'sql' | 'secrets'>,
  batch: number,
): Promise<number> {
  const due = await sql.query<DueVolume>(DUE, [batch]);
  for (const volume of due) {
    await sql.query(NEXT, [volume.id, nextBackupAt(volume.backup_schedule)]);
    if (!volume.is_ready) continue;
    const id = mintId('vbk');
    const { project_id, size_gb, backup_retention_days } = volume;
    const at = timeOfId(id).toISOString();
    await sql.query(INSERT, [
      ...[id, project_id, volume.id, size_gb, sealedPassphrase(secrets, id), at, backup_retention_days],
    ]);
  }
  if (due.length) sql.due('volume_backups');
  return due.length;
}

/** Due times are UTC. null: never */
export function nextBackupAt(schedule: string | null): string | null {
  return schedule === null ? null : (nextDue(schedule, 'UTC', new Date())?.toISOString() ?? null);
}

// The last one that is whole of a volume whose files are lost stays.
const EXPIRED = `id in (select b.id from volume_backups b join volumes v on v.id = b.volume_id
  where b.expires_at < now() and b.deleted_at is null and b.status in ('completed', 'failed')
    and not (v.status = 'failed' and b.id = (select id from volume_backups where volume_id = v.id
      and status = 'completed' and deleted_at is null order by id desc limit 1)) order by b.expires_at limit $1)`;

/** Takes backups away whose time is over. @returns how many */
export async function expireVolumeBackups(sql: Sql, batch: number): Promise<number> {
  return (await tearDownRows(sql, { table: 'volume_backups', where: EXPIRED, values: [batch] })).length;
}

const FORGET = named(`delete from deleted_resources
  where resource_id in (select id from volume_backups where volume_id = $1)`);

/** All backups of a volume that is removed for good, those in the bin included. */
export async function removeBackupsOfVolume(sql: Sql, volumeId: string): Promise<void> {
  await sql.query(FORGET, [volumeId]);
  await tearDownRows(sql, { table: 'volume_backups', where: 'volume_id = $1', values: [volumeId] });
  await makeRowsDue(sql, {
    ...{ table: 'volume_backups', where: 'volume_id = $1 and deleted_at is not null', values: [volumeId] },
  });
}
