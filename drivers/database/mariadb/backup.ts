// Backups are compressed dumps of the database in one transaction. A dump can be loaded by any newer server.
import type { BackupMade, RestoreFrom, DatabaseServer } from '../../database';
import type { DriverContext } from '../../../core/driver';
import { makeBackup, withBackupFile } from '../../hosted_server/backups';
import { requireServerDirectory } from '../../hosted_server/server_directory';
import { killTask } from '../../hosted_server/unit';
import { dump } from './dump';
import { load } from './load';
import type { ProxiedContext } from '../proxied';
import { replaceServerData, requireBackupId, requireProgram, requireRestorable } from '../proxied_server';
import { waitUntilReady, hasData, install, start, stop, toolOf } from './server';
import { nextDisk } from '../disk_size';
import { notesOf } from '../server_notes';
import { toolAccessOf } from './tool';

export const dumpName = 'dump.sql.gz';
const loadMemoryMb = 1_024;

/** @throws DriverError unsupported without mariadb-dump */
export async function backup(
  engine: ProxiedContext,
  spec: DatabaseServer,
  backupId: string,
  ctx: DriverContext,
): Promise<BackupMade> {
  const found = requireProgram(engine, spec.version);
  toolOf(found, 'mariadb-dump');
  const serverDirectory = await requireServerDirectory(engine, spec.id);
  await waitUntilReady(engine, serverDirectory, spec, ctx);
  return makeBackup(
    engine,
    spec.id,
    backupId,
    dumpName,
    async (file) => {
      const taken = new Date().toISOString();
      const missing = await dump(await toolAccessOf(serverDirectory), spec, found, file, ctx);
      return { version: found.version, series: spec.version, taken_at: taken, ...(missing !== null && { missing }) };
    },
    ctx,
  );
}

/** @throws DriverError unsupported for a point in time, invalid where the dump cannot be loaded */
export async function restore(
  engine: ProxiedContext,
  spec: DatabaseServer,
  from: RestoreFrom,
  ctx: DriverContext,
): Promise<void> {
  const id = requireBackupId(from);
  const found = requireProgram(engine, spec.version);
  toolOf(found, 'mariadb');
  const setUp = (data: string): Promise<void> => install(engine, spec, data, ctx);
  const serverDirectory = await requireRestorable(engine, spec, { hasData, setUp }, ctx);
  const replaceWith = async (file: string): Promise<void> => {
    await killTask(engine, spec.id, 'setup', ctx);
    await replaceServerData(
      serverDirectory,
      {
        key: `restore ${from.id}`,
        disk: await nextDisk(engine, serverDirectory, spec),
        now: withLoadMemory(spec),
        before: spec,
        fill: setUp,
        start: (server) => start(engine, serverDirectory, server, ctx),
        waitUntilReady: (server) => waitUntilReady(engine, serverDirectory, server, ctx),
        stop: () => stop(engine, spec.id, ctx),
        load: async () => {
          const access = await toolAccessOf(serverDirectory);
          await load({ access, notes: notesOf(serverDirectory) }, spec, found, file, ctx);
        },
      },
      ctx,
    );
  };
  await withBackupFile(engine, serverDirectory, id, replaceWith, ctx);
}

/**
 * A statement with a value of 64 MB takes more than the smallest package has. `ensure` starts the server with its own
 * size again.
 */
export function withLoadMemory(spec: DatabaseServer): DatabaseServer {
  return { ...spec, size: { ...spec.size, memory_mb: Math.max(spec.size.memory_mb, loadMemoryMb) } };
}
