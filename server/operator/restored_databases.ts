// Managed databases after the restore of an installation: their backups are there, their servers are not.
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../../core/config';
import { createLog } from '../../core/log/log';
import { Problem } from '../../core/errors';
import { named } from '../../db/statement';
import { ManagedDatabase } from '../../models/databases/database';
import type { Moment } from '../../models/databases/database/origin';
import { startStopped } from './handover';
import { inProject } from './open_project';
import { rebuildLostReleases } from './restored_releases';
import { openPlatform, type Platform } from '../platform/platform';
import { noteOfInstallation } from './terminal_activity';

const LOST = named(`select d.id, d.name, d.engine, d.server_id, d.project_id, p.account_id, p.name as project_name,
    array(select b.id from database_backups b where b.database_id = d.id and b.deleted_at is null
      and b.status = 'completed' order by b.id desc) as backups,
    d.point_in_time_window is not null as leads_on
  from databases d join projects p on p.id = d.project_id
  where d.deleted_at is null and (d.observed ->> 'begun')::boolean order by d.id`);

interface LostDatabase {
  id: string;
  name: string;
  project_id: string;
  account_id: string;
  engine: string;
  server_id: string;
  project_name: string;
  /** Newest first. */
  backups: string[];
  /** Whether it can be restored to any moment. */
  leads_on: boolean;
}

/** The service looked at the window of a database a while before the end; the archive reaches as far as the rows. */
const REACHES = named(`update databases set point_in_time_window = jsonb_set(point_in_time_window, '{latest}',
  to_jsonb($2::text)) where id = $1 and point_in_time_window ->> 'earliest' <= $2`);

/**
 * Asks for the restore of each database, which the service does when it starts.
 * @param stopped applications that start again
 * @param rowsAt RFC 3339: the moment to which databases go whose log is there; null: all go to their last backup
 * @returns what has to be done by hand
 */
export async function restoreDatabases(
  config: Config,
  rowsAt: string | null,
  stopped: readonly string[],
): Promise<string[]> {
  const platform = await openPlatform(config, createLog('silent'));
  try {
    const notes: string[] = [];
    for (const lost of await platform.database.query<LostDatabase>(LOST, [])) {
      const note = await restoreOne(platform, lost, rowsAt);
      if (note !== null) notes.push(note);
    }
    if (rowsAt !== null) notes.push(...(await rebuildLostReleases(platform)));
    notes.push(...(await startStopped(platform, stopped)));
    await noteOfInstallation(platform.database, 'installation.restored', null);
    return notes;
  } finally {
    await platform.close();
  }
}

async function restoreOne(platform: Platform, lost: LostDatabase, rowsAt: string | null): Promise<string | null> {
  const { id, name, project_name, leads_on } = lost;
  const backup_id = lost.backups.find((one) => isThere(platform.config, lost, one)) ?? null;
  if (backup_id === null) return `The database ${name} of ${project_name} (${id}) has no backup: its data are lost.`;
  const moments = [...(rowsAt && leads_on ? [{ point_in_time: rowsAt }] : []), { backup_id }];
  let reason = '';
  for (const moment of moments) {
    try {
      await requestRestore(platform, lost, moment);
      return null;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      reason = error.detail ?? error.code;
    }
  }
  return `The database ${name} of ${project_name} (${id}) has to be restored by hand: ${reason}`;
}

/** One that was made after the files were copied is not. */
function isThere({ backupStore, dataDir }: Config, { server_id }: LostDatabase, backup: string): boolean {
  return backupStore !== null || existsSync(path.join(dataDir, 'databases/backups', server_id, backup));
}

async function requestRestore(platform: Platform, lost: LostDatabase, moment: Moment): Promise<void> {
  await inProject(platform, lost, async (own) => {
    if (moment.point_in_time) await own.sql.query(REACHES, [lost.id, moment.point_in_time]);
    const database = await ManagedDatabase.forUpdate(own, lost.id);
    if (database.status !== 'restoring') await database.restore(own, moment);
  });
}
