// Backups in the bin: their files stay. What ends by its own time (retention, a purged database) does not come here.
import { limits } from '../../../core/limits';
import { changeRows } from '../../../db/loop_rows';
import type { Bin } from '../../base/bin';
import type { DatabaseBackup } from '../database_backup';

export const backupBin: Bin<DatabaseBackup> = {
  nameFormat: null,
  /** One whose time has passed meanwhile would be gone at once; one of a purged database is kept for a time alone. */
  async restore(ctx, { id }) {
    const soonest = `now() + make_interval(days => ${limits.databaseGraceDays})`;
    const ends = `expires_at is not null or exists (select from databases d where d.id = database_id
      and d.deleted_at is not null)`;
    await changeRows(ctx.sql, {
      ...{ table: 'database_backups', where: `id = $1 and (${ends})`, values: [id] },
      set: `expires_at = greatest(expires_at, ${soonest})`,
    });
    return [];
  },
};
