// Managed databases after the restore of an installation: their backups are there, their servers are not.
import type { Config } from '../../core/config';
import { createLog } from '../../core/log/log';
import { mintRequestId } from '../../core/ids';
import { Problem } from '../../core/errors';
import { named } from '../../db/statement';
import { ManagedDatabase } from '../../models/databases/database';
import { actAsOperator } from './open';
import { makeContext } from '../platform/context';
import { openPlatform, type Platform } from '../platform/platform';
import { noteOfInstallation } from './terminal_activity';

const LOST = named(`select d.id, d.name, d.project_id, p.account_id, p.name as project_name,
    (select b.id from database_backups b where b.database_id = d.id and b.deleted_at is null
      and b.status = 'completed' order by b.id desc limit 1) as backup_id
  from databases d join projects p on p.id = d.project_id
  where d.deleted_at is null and (d.observed ->> 'begun')::boolean order by d.id`);

interface LostDatabase {
  id: string;
  name: string;
  project_id: string;
  account_id: string;
  project_name: string;
  backup_id: string | null;
}

/**
 * Asks for the restore of each database, which the service does when it starts.
 * @returns what has to be done by hand
 */
export async function restoreDatabases(config: Config): Promise<string[]> {
  const platform = await openPlatform(config, createLog('silent'));
  try {
    const notes: string[] = [];
    for (const lost of await platform.database.query<LostDatabase>(LOST, [])) {
      const note = await restoreOne(platform, lost);
      if (note !== null) notes.push(note);
    }
    await noteOfInstallation(platform.database, 'installation.restored', null);
    return notes;
  } finally {
    await platform.close();
  }
}

async function restoreOne(platform: Platform, lost: LostDatabase): Promise<string | null> {
  const { id, name, project_name, backup_id } = lost;
  if (backup_id === null) return `The database ${name} of ${project_name} (${id}) has no backup: its data are lost.`;
  try {
    const ctx = makeContext(platform, {
      ...{ request_id: mintRequestId(), address: 'operator', user_agent: 'operator', project_header: undefined },
    });
    await ctx.transact(async (own) => {
      actAsOperator(own, { id: lost.project_id, account_id: lost.account_id, name: project_name } as never);
      const database = await ManagedDatabase.forUpdate(own, id);
      if (database.status === 'restoring') return;
      await database.restore(own, { backup_id });
    });
    return null;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return `The database ${name} of ${project_name} (${id}) has to be restored by hand: ${error.detail}`;
  }
}
