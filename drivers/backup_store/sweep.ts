// Removes garbage: files of backups without a manifest, and WAL of servers without backups. Only names in the
// platform's format are touched, and only if unmodified for a day.
import type { BackupStore } from '../backup_store';
import type { DriverContext } from '../../core/driver';

/** Longer than any step of a backup. */
export const ABANDONED_MS = 24 * 3_600_000;

const serverForm = /^(db|rep|vol)_[a-z0-9_]{1,60}$/;

/** @returns number of removed files and unfinished uploads */
export async function sweepBackupStore(store: BackupStore, abandonedMs: number, ctx: DriverContext): Promise<number> {
  const before = new Date(Date.now() - abandonedMs);
  let removed = 0;
  for await (const server of store.listFolders('', ctx)) {
    if (!serverForm.test(server)) continue;
    removed += await store.removeUnfinished(`${server}/`, before, ctx);
    let backups = 0;
    for await (const backup of store.listFolders(`${server}/backups/`, ctx)) {
      const folder = `${server}/backups/${backup}/`;
      if (await store.has(`${folder}manifest.json`, ctx)) backups += 1;
      else removed += await removeOld(store, folder, before, ctx);
    }
    if (backups === 0) removed += await removeOld(store, `${server}/archive/`, before, ctx);
  }
  return removed;
}

/** Removes a folder, unless a file in it is younger. */
async function removeOld(store: BackupStore, folder: string, before: Date, ctx: DriverContext): Promise<number> {
  const names: string[] = [];
  for await (const { name, modified_at } of store.list(folder, ctx)) {
    if (modified_at >= before.toISOString()) return 0;
    names.push(name);
  }
  for (const name of names) await store.remove(name, ctx);
  return names.length;
}
