// Checks of restored data: the server has compared the snapshot with its checksum, and has as many keys.
import type { DatabaseServer } from '../../database';
import type { DriverContext } from '../../../core/driver';
import type { BackupOfServer } from '../../hosted_server';
import { readBackupManifest } from '../../hosted_server/backups';
import { requireRows } from '../../hosted_server/restored_rows';
import { requireServerDirectory } from '../../hosted_server/server_directory';
import { infoFieldsOf, withServer, type SendCommand } from './connection';
import type { RedisContext } from './server';

/** @throws DriverError invalid, with what is not whole */
export async function verifyRestored(
  engine: RedisContext,
  spec: DatabaseServer,
  from: BackupOfServer,
  ctx: DriverContext,
): Promise<{ rows: number }> {
  const serverDirectory = await requireServerDirectory(engine, spec.id);
  const { keys } = await withServer(serverDirectory, spec, countKeys, ctx);
  const manifest = await readBackupManifest(engine, from.server_id, from.backup_id);
  const held = manifest?.lasting_keys;
  if (typeof held === 'number')
    requireRows({
      expected: new Map([['', held]]),
      found: new Map([['', keys]]),
      ...{ isExact: false, unit: 'keys' },
    });
  return { rows: keys };
}

/** Of all numbered databases. `lasting`: those without an expiry. */
export async function countKeys(send: SendCommand): Promise<{ keys: number; lasting: number }> {
  let [keys, lasting] = [0, 0];
  for (const [name, value] of infoFieldsOf(await send('INFO', 'keyspace'))) {
    const [, all, expiring] = /^keys=(\d+),expires=(\d+)/.exec(value) ?? [];
    if (!/^db\d+$/.test(name)) continue;
    keys += Number(all);
    lasting += Number(all) - Number(expiring);
  }
  return { keys, lasting };
}
