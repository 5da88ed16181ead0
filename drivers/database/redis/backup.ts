// Backups are snapshots that the server writes itself (RDB).
import { chown, mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BackupMade, RestoreFrom, ServerSpec } from '../../database';
import { run } from '../../command';
import { DriverError, checkpoint } from '../../driver';
import type { DriverContext } from '../../driver';
import { copyFile, makeBackup, requireBackup } from '../backups';
import { requireHome, type Home, type Owner } from '../home';
import { patiently } from '../readiness';
import { dataOwner, replaceData } from '../replacement';
import { fieldsOf, withServer, type Say } from './connection';
import { awaken, programOf, start, stop, type RedisEstate } from './server';

const snapshotName = 'dump.rdb';
const lookEveryMs = 100;

export async function backup(
  estate: RedisEstate,
  spec: ServerSpec,
  backupId: string,
  ctx: DriverContext,
): Promise<BackupMade> {
  const home = await requireHome(estate, spec.id);
  return makeBackup(
    estate,
    spec.id,
    backupId,
    snapshotName,
    async (file) => {
      const version = await withServer(home, spec, (say) => snapshot(say, ctx), ctx);
      const taken = path.join(home.data, snapshotName);
      await copyFile(taken, file, null, ctx);
      // It counts towards the storage of the tenant, and the server has no use for it.
      await rm(taken, { force: true });
      return { version, series: spec.version, taken_at: new Date().toISOString() };
    },
    ctx,
  );
}

/** @throws DriverError unsupported for a point in time, invalid where the server does not start with the data */
export async function restore(
  estate: RedisEstate,
  spec: ServerSpec,
  from: RestoreFrom,
  ctx: DriverContext,
): Promise<void> {
  const { backup_id: backupId } = from;
  if (backupId === null || from.until !== null)
    throw new DriverError('unsupported', 'The engine cannot go back to a point in time. Restore a backup.');
  const home = await requireHome(estate, spec.id);
  const { file } = await requireBackup(estate, from.server_id, backupId);
  const { version } = programOf(estate, spec.version);
  const owner = await dataOwner(home);
  await replace(
    estate,
    home,
    { key: `restore ${from.id}`, now: spec, before: spec, fill: (draft) => layOut(draft, file, version, owner, ctx) },
    ctx,
  );
}

/** Works on a copy, for the older server does not read what the newer one has written. @throws DriverError unsupported, invalid */
export async function upgrade(
  estate: RedisEstate,
  spec: ServerSpec,
  fromVersion: string,
  ctx: DriverContext,
): Promise<void> {
  programOf(estate, spec.version);
  const home = await requireHome(estate, spec.id);
  const before = { ...spec, version: fromVersion };
  const fill = async (draft: string) => {
    await stop(estate, spec.id, ctx);
    await run('cp', ['-a', '--', `${home.data}/.`, draft], ctx);
  };
  await replace(estate, home, { key: `upgrade ${fromVersion} ${spec.version}`, now: spec, before, fill }, ctx);
}

interface Change {
  key: string;
  now: ServerSpec;
  before: ServerSpec;
  fill: (draft: string) => Promise<void>;
}

async function replace(
  estate: RedisEstate,
  home: Home,
  { key, now, before, fill }: Change,
  ctx: DriverContext,
): Promise<void> {
  const steps = {
    stop: () => stop(estate, now.id, ctx),
    // Past what a start usually takes: a large snapshot is read for minutes.
    prove: () =>
      patiently(
        () => start(estate, home, now, ctx),
        () => awaken(estate, home, now, ctx),
        ctx,
      ),
    goBack: async () => (before.running ? start(estate, home, before, ctx) : undefined),
  };
  await replaceData(home, { key, fill, ...steps }, ctx);
  if (!now.running) await stop(estate, now.id, ctx);
}

// With an append-only file the server reads nothing else. Since 7.0 it is a directory whose first part may be a snapshot;
// before, a file that may begin with one.
async function layOut(draft: string, file: string, version: string, owner: Owner, ctx: DriverContext): Promise<void> {
  const isOld = Number(version.split('.')[0]) < 7;
  const directory = isOld ? draft : path.join(draft, 'appendonlydir');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await copyFile(file, path.join(directory, isOld ? 'appendonly.aof' : 'appendonly.aof.1.base.rdb'), owner, ctx);
  const manifest = path.join(directory, 'appendonly.aof.manifest');
  if (!isOld) await writeFile(manifest, 'file appendonly.aof.1.base.rdb seq 1 type b\n', { mode: 0o600, flush: true });
  if (process.getuid?.() !== 0) return;
  for (const one of isOld ? [draft] : [draft, directory, manifest]) await chown(one, owner.uid, owner.gid);
}

/** Answers the version of the server when the snapshot lies on disk. */
async function snapshot(say: Say, ctx: DriverContext): Promise<string> {
  const before = await progress(say);
  await say('BGSAVE', 'SCHEDULE');
  for (;;) {
    await sleep(lookEveryMs);
    checkpoint(ctx);
    const now = await progress(say);
    if (now.busy) continue;
    if (now.failed) throw new DriverError('transient', 'The server could not write its data to disk.', 5_000);
    if (now.mark !== before.mark) return fieldsOf(await say('INFO', 'server')).get('redis_version') ?? 'unknown';
  }
}

// rdb_saves counts since 7.0; before, the time of the last one has to do, which counts seconds.
async function progress(say: Say): Promise<{ mark: string; busy: boolean; failed: boolean }> {
  const state = fieldsOf(await say('INFO', 'persistence'));
  const busy = state.get('rdb_bgsave_in_progress') === '1' || state.get('aof_rewrite_in_progress') === '1';
  return {
    busy,
    mark: state.get('rdb_saves') ?? state.get('rdb_last_save_time') ?? '',
    failed: state.get('rdb_last_bgsave_status') !== 'ok',
  };
}
