// Checks that a store supports backups: a small file is written, found, read and removed.
import { randomBytes } from 'node:crypto';
import type { BackupStore } from '../backup_store';
import { DriverError, type DriverContext } from '../../core/driver';

/** @throws DriverError with the operation that the store rejects */
export async function probeBackupStore(store: BackupStore, ctx: DriverContext): Promise<void> {
  const folder = 'probe/';
  const name = folder + randomBytes(8).toString('hex');
  const text = 'May be removed.';
  await store.write(name, text, ctx);
  try {
    if ((await store.read(name, ctx)) !== text) throw new DriverError('transient', 'A file is not what was stored.');
    for await (const found of store.list(folder, ctx)) if (found.name === name) return;
    throw new DriverError('transient', 'A file that was stored is not in the list.');
  } finally {
    await store.remove(name, ctx);
  }
}
