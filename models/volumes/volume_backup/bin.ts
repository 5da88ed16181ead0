// Backups in the bin: their files stay. What ends by its own time (retention, a purged volume) does not come here.
import { limits } from '../../../core/limits';
import { changeRows } from '../../../db/loop_rows';
import type { Bin } from '../../base/bin';
import type { VolumeBackup } from '../volume_backup';

export const volumeBackupBin: Bin<VolumeBackup> = {
  nameFormat: null,
  /** One whose time has passed meanwhile would be gone at once. */
  async restore(ctx, { id }) {
    await changeRows(ctx.sql, {
      ...{ table: 'volume_backups', where: 'id = $1 and expires_at is not null', values: [id] },
      set: `expires_at = greatest(expires_at, now() + make_interval(days => ${limits.databaseGraceDays}))`,
    });
    return [];
  },
};
