// Where backups of volumes lie, and how many are made or restored at a time.
import path from 'node:path';
import type { Config } from '../../../core/config';
import { openBackupStore } from '../../../drivers/backup_store/open';
import type { BackupPlace } from '../../../drivers/volume_backup/parts';

/** Each takes a slot of the loop, and the disk. */
const AT_ONCE = 1;

export function backupPlace(config: Config): BackupPlace {
  return { directory: path.join(config.dataDir, 'volume-backups'), store: openBackupStore(config) };
}

/** Of this process. */
export class Turns {
  private taken = 0;

  /** @returns null where another one is under way */
  async take<T>(work: () => Promise<T>): Promise<T | null> {
    if (this.taken >= AT_ONCE) return null;
    this.taken += 1;
    try {
      return await work();
    } finally {
      this.taken -= 1;
    }
  }
}
