// Restores: the files of a backup, and the log after them up to the point that is wanted, played by a server aside. Its
// data take the place of those of the server when they are whole; the old ones stay until the server with the new ones
// answers.
import { constants } from 'node:fs';
import { copyFile, link, mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '../../command';
import type { RestoreFrom } from '../../database';
import { DriverError, checkpoint, driverContext } from '../../driver';
import type { DriverContext } from '../../driver';
import {
  absentIsNull,
  removeTree,
  exists,
  findServerDirectory,
  serverDirectoryOf,
  readNote,
  removeNote,
  writeNote,
  writeFileFor,
  type ServerDirectory,
} from '../../hosted_server/server_directory';
import { isReplacing, replaceData } from '../../hosted_server/replacement';
import { leadingOn } from './archiving';
import { backupsFound, backupMissing, orderOf, type Manifest } from './backups';
import { archiveDirectory, backupsOf, majorOf, systemIdentifierOf, type Cluster } from './cluster';
import { configure } from './configuration';
import { makeDirectories } from './data';
import { ensureServer, ensureContent } from './ensure';
import { readLog } from './log';
import { endOf, assignOwner, isRunning, stopServer, startServer, whenReady } from './server';
import { inSession, isUnavailable } from './session';
import { backupFor, noteTimeline, timelineAt, timelinesOf } from './timelines';

const archivedWithinMs = 20_000;
const answersWithinMs = 60_000;

interface Plan {
  backup: Manifest;
  timeline: number;
  until: string | null;
  source: ServerDirectory;
}

/** @throws DriverError invalid where no backup leads to that point; then nothing was touched */
export async function restore(cluster: Cluster, from: RestoreFrom, ctx: DriverContext): Promise<void> {
  const { serverDirectory, spec } = cluster;
  const plan = await planOf(cluster, from);
  if ((await readNote(serverDirectory, 'made')) === null)
    await writeNote(serverDirectory, 'restoring', { id: from.id });
  await rollBackOnFailure(cluster, ctx, () =>
    replaceData(
      serverDirectory,
      {
        key: `restore-${from.id}`,
        fill: (temporary) => replay(cluster, plan, temporary, ctx),
        stop: () => stopAll(cluster, ctx),
        verify: async () => {
          await verifyData(cluster, ctx);
          await noteNewTimeline(cluster, plan);
          await writeNote(serverDirectory, 'made', { version: spec.version });
        },
        rollBack: () => Promise.resolve(),
      },
      ctx,
    ),
  );
  await removeNote(serverDirectory, 'restoring');
  await removeTree(stagingDirectoryOf(serverDirectory).path, ctx);
  await ensureServer(cluster, ctx);
}

/** Where the work fails, and the data are still, or again, the old ones, their server serves again. */
export async function rollBackOnFailure(old: Cluster, ctx: DriverContext, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const isOld =
      !ctx.signal.aborted &&
      !(await isReplacing(old.serverDirectory)) &&
      (await majorOf(old.serverDirectory.data)) !== null;
    if (isOld) await stopAll(old, ctx);
    if (isOld) await ensureServer(old, ctx);
    throw error;
  }
}

/** Nothing of the server runs, in place or aside. */
export async function stopAll(cluster: Cluster, ctx: DriverContext): Promise<void> {
  for (const which of ['staging', 'server'] as const) await stopServer(cluster, which, ctx);
}

/** A server directory below the directory, for a server that works on data which are not in place. */
export function stagingDirectoryOf(serverDirectory: ServerDirectory): ServerDirectory {
  const at = path.join(serverDirectory.path, 'staging');
  return {
    id: serverDirectory.id,
    path: at,
    data: path.join(at, 'data'),
    conf: path.join(at, 'conf'),
    run: path.join(at, 'run'),
  };
}

/** The server with the new data answers, takes the users that it should have, and is closed to all others meanwhile. */
export async function verifyData(cluster: Cluster, ctx: DriverContext): Promise<void> {
  const { serverDirectory } = cluster;
  const owner = await assignOwner(cluster, serverDirectory.data, ctx);
  await configure(
    cluster,
    serverDirectory.data,
    await systemIdentifierOf(serverDirectory.data),
    owner,
    { kind: 'private' },
    ctx,
  );
  await startServer(cluster, 'server', serverDirectory.data, ctx);
  await ensureContent(cluster, driverContext(answersWithinMs, ctx.signal));
  await stopServer(cluster, 'server', ctx);
}

async function planOf({ engine, spec }: Cluster, from: RestoreFrom): Promise<Plan> {
  const all = await backupsFound(engine, from.server_id);
  const source = serverDirectoryOf(engine, from.server_id);
  const named = all.find(({ id }) => id === from.backup_id);
  if (from.backup_id !== null && named === undefined) throw backupMissing();
  const turns = await timelinesOf(source);
  const timeline = from.until === null ? (named?.timeline ?? 1) : timelineAt(turns, from.until);
  const backup =
    from.until === null
      ? named
      : backupFor(await leadingOn(source, named === undefined ? all : [named]), turns, from.until, timeline);
  if (backup === null || backup === undefined)
    throw new DriverError('invalid', 'No backup leads to this point in time.');
  if (backup.version !== spec.version)
    throw new DriverError(
      'invalid',
      `A backup of PostgreSQL ${backup.version} cannot be restored into ${spec.version}.`,
    );
  return { backup, timeline, until: from.until, source };
}

async function replay(cluster: Cluster, plan: Plan, temporary: string, ctx: DriverContext): Promise<void> {
  const { engine, serverDirectory } = cluster;
  await stopServer(cluster, 'staging', ctx);
  await completeArchive(cluster, plan, ctx);
  const base = path.join(backupsOf(engine, plan.source.id), plan.backup.id, 'base');
  await run('tar', ['-xzf', path.join(base, 'base.tar.gz'), '-C', temporary], ctx);
  await run('tar', ['-xzf', path.join(base, 'pg_wal.tar.gz'), '-C', path.join(temporary, 'pg_wal')], ctx);
  await removeTree(stagingDirectoryOf(serverDirectory).path, ctx);
  const staging: Cluster = { ...cluster, serverDirectory: stagingDirectoryOf(serverDirectory) };
  await makeDirectories(staging.serverDirectory);
  const archive = await fetchArchive(staging, plan, ctx);
  const owner = await assignOwner(cluster, temporary, ctx);
  await writeFileFor(path.join(temporary, 'recovery.signal'), '', owner);
  // The server aside sees its own directory only: there is its copy of the archive.
  const target: Record<string, string> =
    plan.until === null ? { recovery_target: 'immediate' } : { recovery_target_time: withOffset(plan.until) };
  await recover(staging, temporary, { archive, timeline: plan.timeline, target }, ctx);
}

// To the target; where the log ends before it, all of the log is before it.
async function recover(
  staging: Cluster,
  temporary: string,
  { archive, timeline, target }: { archive: string; timeline: number; target: Record<string, string> },
  ctx: DriverContext,
): Promise<void> {
  const owner = await assignOwner(staging, temporary, ctx);
  for (const wanted of [target, {}]) {
    const settings = {
      restore_command:
        `if test -f "${archive}/%f.gz"; then gzip -dc "${archive}/%f.gz" > "%p"; ` + `else cp "${archive}/%f" "%p"; fi`,
      recovery_target_timeline: timeline,
      recovery_target_action: 'promote',
      hot_standby: 'off',
      ...wanted,
    };
    await configure(
      staging,
      temporary,
      await systemIdentifierOf(temporary),
      owner,
      { kind: 'recovery', settings },
      ctx,
    );
    await startServer(staging, 'staging', temporary, ctx);
    const failure = await promoted(staging, temporary, ctx);
    if (failure === null) return stopServer(staging, 'staging', ctx);
    await stopServer(staging, 'staging', ctx);
    if (!(await endedTooEarly(staging.serverDirectory))) throw failure;
  }
  throw new DriverError('transient', 'The write-ahead log of the server could not be replayed.');
}

// Z is the name of a time zone, and the server has not read those when it reads this.
function withOffset(time: string): string {
  return new Date(time).toISOString().replace('Z', '+00');
}

async function promoted(staging: Cluster, data: string, ctx: DriverContext): Promise<DriverError | null> {
  for (;;) {
    checkpoint(ctx);
    const isOpen = await inSession(staging, { data }, async (session) => {
      const { rows } = await session.query<{ follows: boolean }>('select pg_is_in_recovery() as follows');
      return rows[0]?.follows === false;
    }).catch((error: unknown) => {
      if (isUnavailable(error)) return false;
      throw error;
    });
    if (isOpen) return null;
    const end = await endOf(staging, 'staging');
    if (end !== null) return end;
    await sleep(100);
  }
}

async function endedTooEarly(serverDirectory: ServerDirectory): Promise<boolean> {
  for (let position: string | null = null, more = true; more;) {
    const chunk = await readLog(serverDirectory, position);
    if (chunk.lines.some(({ text }) => text.includes('recovery ended before configured recovery target was reached')))
      return true;
    ({ position, more } = chunk);
  }
  return false;
}

// All that was committed up to now is in the archive. In place the server stops for it; the data of another one stay as
// they are. One that cannot be asked has what it has.
async function completeArchive(cluster: Cluster, { until, source, backup }: Plan, ctx: DriverContext): Promise<void> {
  if (until === null || typeof (await findServerDirectory(cluster.engine, source.id)) === 'string') return;
  if (!(await exists(source.data)) || (await systemIdentifierOf(source.data)) !== backup.system_identifier) return;
  const launched = await readNote<{ port: number }>(source, 'launched');
  const origin: Cluster = {
    ...cluster,
    serverDirectory: source,
    spec: { ...cluster.spec, id: source.id, port: launched?.port ?? cluster.spec.port },
  };
  if (!(await isRunning(origin))) return;
  await whenReady(
    origin,
    'server',
    {},
    async (session) => {
      // A commit after the point that is wanted, so that the end of the log is not before it.
      await session.query('select pg_current_xact_id()');
      const { rows } = await session.query<{ file: string }>('select pg_walfile_name(pg_switch_wal()) as file');
      await archived(path.join(archiveDirectory(source, backup.system_identifier), `${rows[0]?.file}.gz`), ctx);
    },
    driverContext(answersWithinMs, ctx.signal),
  );
  if (source.id === cluster.spec.id) await stopServer(cluster, 'server', ctx);
}

async function archived(file: string, ctx: DriverContext): Promise<void> {
  for (const end = Date.now() + archivedWithinMs; Date.now() < end; await sleep(100)) {
    checkpoint(ctx);
    if (await exists(file)) return;
  }
  throw new DriverError('transient', 'The write-ahead log of the server has not reached its archive yet.', 10_000);
}

async function fetchArchive(staging: Cluster, { backup, source }: Plan, ctx: DriverContext): Promise<string> {
  const from = archiveDirectory(source, backup.system_identifier);
  const to = path.join(staging.serverDirectory.path, 'archive', 'fetched');
  await mkdir(to, { mode: 0o700 });
  const isNeeded = (file: string) => file.includes('.history') || orderOf(file) >= orderOf(backup.wal_file);
  const inPlace = source.id === staging.serverDirectory.id;
  for (const file of await namesIn(from, /^[0-9A-F]{8}.*\.gz$/)) {
    checkpoint(ctx);
    // The files of one user may be shared; those of another one become those of whoever gets them.
    if (isNeeded(file))
      await (inPlace
        ? link(path.join(from, file), path.join(to, file))
        : copyFile(path.join(from, file), path.join(to, file), constants.COPYFILE_FICLONE));
  }
  await fetchUnarchived(source, to, isNeeded);
  await assignOwner(staging, path.join(staging.serverDirectory.path, 'archive'), ctx);
  return to;
}

// What a server that died had no time to archive.
async function fetchUnarchived(
  source: ServerDirectory,
  to: string,
  isNeeded: (file: string) => boolean,
): Promise<void> {
  const log = path.join(source.data, 'pg_wal');
  for (const file of await namesIn(log, /^[0-9A-F]{24}$/)) {
    if (isNeeded(file) && !(await exists(path.join(to, `${file}.gz`))))
      await copyFile(path.join(log, file), path.join(to, file)).catch(absentIsNull);
  }
}

async function namesIn(directory: string, form: RegExp): Promise<string[]> {
  return ((await readdir(directory).catch(absentIsNull)) ?? []).filter((file) => form.test(file));
}

async function noteNewTimeline({ serverDirectory }: Cluster, plan: Plan): Promise<void> {
  const turns = await timelinesOf(plan.source);
  const timeline = await timelineIn(serverDirectory.data);
  await noteTimeline(serverDirectory, turns, {
    timeline,
    parent: plan.timeline,
    since: new Date().toISOString(),
    point: plan.until ?? plan.backup.taken_at,
  });
}

/** The newest history file among the log says the timeline that a recovery has begun. */
async function timelineIn(data: string): Promise<number> {
  const files = (await readdir(path.join(data, 'pg_wal'))).filter((file) => file.endsWith('.history')).sort();
  return parseInt(files.at(-1)?.slice(0, 8) ?? '1', 16);
}
