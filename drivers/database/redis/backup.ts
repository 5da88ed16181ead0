// Backups are RDB snapshots written by the server.
import { chown, mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BackupMade, RestoreFrom, DatabaseServer } from '../../database';
import { run } from '../../../core/process/command';
import { DriverError, checkpoint } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { copyFile, makeBackup, withBackupFile } from '../../hosted_server/backups';
import { requireServerDirectory, type ServerDirectory, type Owner } from '../../hosted_server/server_directory';
import { dataOwner, type NextDisk } from '../../hosted_server/replacement';
import { infoFieldsOf, withServer, type SendCommand } from './connection';
import { replaceServerData, requireBackupId, requireProgram, requireRestorable } from '../proxied_server';
import { countKeys } from './verify';
import { hasData, setUp, waitUntilReady, start, stop, type RedisContext } from './server';
import { nextDisk } from '../disk_size';

const snapshotName = 'dump.rdb';
const pollEveryMs = 100;

export async function backup(
  engine: RedisContext,
  spec: DatabaseServer,
  backupId: string,
  ctx: DriverContext,
): Promise<BackupMade> {
  const serverDirectory = await requireServerDirectory(engine, spec.id);
  return makeBackup(
    engine,
    spec.id,
    backupId,
    snapshotName,
    async (file) => {
      const { lasting } = await withServer(serverDirectory, spec, countKeys, ctx);
      const version = await withServer(serverDirectory, spec, (send) => snapshot(send, ctx), ctx);
      const taken = path.join(serverDirectory.data, snapshotName);
      await copyFile(taken, file, null, ctx);
      // The snapshot counts towards the storage of the tenant, and the server does not need it.
      await rm(taken, { force: true });
      return { version, series: spec.version, taken_at: new Date().toISOString(), lasting_keys: lasting };
    },
    ctx,
  );
}

/** @throws DriverError unsupported for a point in time, invalid where the server does not start with the data */
export async function restore(
  engine: RedisContext,
  spec: DatabaseServer,
  from: RestoreFrom,
  ctx: DriverContext,
): Promise<void> {
  const id = requireBackupId(from);
  const make = { hasData, setUp: (data: string): Promise<void> => setUp(engine, spec, data, ctx) };
  const serverDirectory = await requireRestorable(engine, spec, make, ctx);
  const { version } = requireProgram(engine, spec.version);
  const owner = await dataOwner(serverDirectory);
  const replaceWith = (file: string): Promise<void> => {
    const copy = (to: string) => copyFile(file, to, owner, ctx);
    const fill = (temporary: string) => writeAppendOnlyFile(temporary, copy, version, owner);
    return replaceRedisData(engine, serverDirectory, { key: `restore ${from.id}`, now: spec, before: spec, fill }, ctx);
  };
  await withBackupFile(engine, serverDirectory, id, replaceWith, ctx);
}

/**
 * Upgrades a copy, since an older server cannot read the files of a newer one. @throws DriverError unsupported, invalid
 */
export async function upgrade(
  engine: RedisContext,
  spec: DatabaseServer,
  fromVersion: string,
  ctx: DriverContext,
): Promise<void> {
  requireProgram(engine, spec.version);
  const serverDirectory = await requireServerDirectory(engine, spec.id);
  const before = { ...spec, version: fromVersion };
  const fill = async (temporary: string) => {
    await stop(engine, spec.id, ctx);
    await run('cp', ['-a', '--', `${serverDirectory.data}/.`, temporary], ctx);
  };
  await replaceRedisData(
    engine,
    serverDirectory,
    { key: `upgrade ${fromVersion} ${spec.version}`, now: spec, before, fill },
    ctx,
  );
}

/** As ServerReplacement. Without `disk`, the disk has the size of the package. */
interface Change {
  key: string;
  disk?: NextDisk;
  now: DatabaseServer;
  before: DatabaseServer;
  fill: (temporary: string) => Promise<void>;
}

export async function replaceRedisData(
  engine: RedisContext,
  serverDirectory: ServerDirectory,
  change: Change,
  ctx: DriverContext,
): Promise<void> {
  const steps = {
    start: (server: DatabaseServer) => start(engine, serverDirectory, server, ctx),
    waitUntilReady: (server: DatabaseServer) => waitUntilReady(engine, serverDirectory, server, ctx),
    stop: () => stop(engine, change.now.id, ctx),
  };
  const disk = change.disk ?? (await nextDisk(engine, serverDirectory, change.now));
  await replaceServerData(serverDirectory, { ...change, ...steps, disk }, ctx);
}

/**
 * If there is an append-only file, the server loads nothing else. Since 7.0 it is a directory whose base file may be a
 * snapshot; before, a file that may start with one.
 */
export async function writeAppendOnlyFile(
  temporary: string,
  writeSnapshot: (to: string) => Promise<void>,
  version: string,
  owner: Owner,
): Promise<void> {
  const isOld = Number(version.split('.')[0]) < 7;
  const directory = isOld ? temporary : path.join(temporary, 'appendonlydir');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeSnapshot(path.join(directory, isOld ? 'appendonly.aof' : 'appendonly.aof.1.base.rdb'));
  const manifest = path.join(directory, 'appendonly.aof.manifest');
  if (!isOld) await writeFile(manifest, 'file appendonly.aof.1.base.rdb seq 1 type b\n', { mode: 0o600, flush: true });
  if (process.getuid?.() !== 0) return;
  for (const one of isOld ? [temporary] : [temporary, directory, manifest]) await chown(one, owner.uid, owner.gid);
}

/** Returns the version of the server once the snapshot is on disk. */
async function snapshot(send: SendCommand, ctx: DriverContext): Promise<string> {
  const before = await progress(send);
  await send('BGSAVE', 'SCHEDULE');
  for (;;) {
    await sleep(pollEveryMs);
    checkpoint(ctx);
    const now = await progress(send);
    if (now.busy) continue;
    if (now.failed) throw new DriverError('transient', 'The server could not write its data to disk.', 5_000);
    if (now.mark !== before.mark) return infoFieldsOf(await send('INFO', 'server')).get('redis_version') ?? 'unknown';
  }
}

// rdb_saves exists since 7.0; before, the time of the last save in seconds has to do.
async function progress(send: SendCommand): Promise<{ mark: string; busy: boolean; failed: boolean }> {
  const state = infoFieldsOf(await send('INFO', 'persistence'));
  const busy = state.get('rdb_bgsave_in_progress') === '1' || state.get('aof_rewrite_in_progress') === '1';
  return {
    busy,
    mark: state.get('rdb_saves') ?? state.get('rdb_last_save_time') ?? '',
    failed: state.get('rdb_last_bgsave_status') !== 'ok',
  };
}
