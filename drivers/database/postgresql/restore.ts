// Restores: the files of a backup, and the log after them up to the point that is wanted, played by a server aside. Its data
// take the place of those of the server when they are whole; the old ones stay until the server with the new ones answers.
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
  erase,
  exists,
  findHome,
  homeOf,
  readNote,
  removeNote,
  writeNote,
  giveFile,
  type Home,
} from '../home';
import { isReplacing, replaceData } from '../replacement';
import { leadingOn } from './archiving';
import { backupsFound, missing, orderOf, type Manifest } from './backups';
import { archiveDirectory, backupsOf, majorOf, systemIdentifierOf, type Cluster } from './cluster';
import { configure } from './configuration';
import { furnish } from './data';
import { bring, ensureContent } from './ensure';
import { readLog } from './log';
import { endOf, giveData, isServing, quiet, serve, whenReady } from './server';
import { inSession, isUnavailable } from './session';
import { backupFor, noteTimeline, timelineAt, timelinesOf } from './timelines';

const archivedWithinMs = 20_000;
const answersWithinMs = 60_000;

interface Plan {
  backup: Manifest;
  timeline: number;
  until: string | null;
  source: Home;
}

/** @throws DriverError invalid where no backup leads to that point; then nothing was touched */
export async function restore(cluster: Cluster, from: RestoreFrom, ctx: DriverContext): Promise<void> {
  const { home, spec } = cluster;
  const plan = await planOf(cluster, from);
  if ((await readNote(home, 'made')) === null) await writeNote(home, 'restoring', { id: from.id });
  await orGoBack(cluster, ctx, () =>
    replaceData(
      home,
      {
        key: `restore-${from.id}`,
        fill: (draft) => replay(cluster, plan, draft, ctx),
        stop: () => quietBoth(cluster, ctx),
        prove: async () => {
          await tryOut(cluster, ctx);
          await noteTurn(cluster, plan);
          await writeNote(home, 'made', { version: spec.version });
        },
        goBack: () => Promise.resolve(),
      },
      ctx,
    ),
  );
  await removeNote(home, 'restoring');
  await erase(asideOf(home).path, ctx);
  await bring(cluster, ctx);
}

/** Where the work fails, and the data are still, or again, the old ones, their server serves again. */
export async function orGoBack(old: Cluster, ctx: DriverContext, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const isOld = !ctx.signal.aborted && !(await isReplacing(old.home)) && (await majorOf(old.home.data)) !== null;
    if (isOld) await quietBoth(old, ctx);
    if (isOld) await bring(old, ctx);
    throw error;
  }
}

/** Nothing of the server runs, in place or aside. */
export async function quietBoth(cluster: Cluster, ctx: DriverContext): Promise<void> {
  for (const which of ['aside', 'server'] as const) await quiet(cluster, which, ctx);
}

/** A home below the home, for a server that works on data which are not in place. */
export function asideOf(home: Home): Home {
  const at = path.join(home.path, 'aside');
  return { id: home.id, path: at, data: path.join(at, 'data'), conf: path.join(at, 'conf'), run: path.join(at, 'run') };
}

/** The server with the new data answers, takes the users that it should have, and is closed to all others meanwhile. */
export async function tryOut(cluster: Cluster, ctx: DriverContext): Promise<void> {
  const { home } = cluster;
  const owner = await giveData(cluster, home.data, ctx);
  await configure(cluster, home.data, await systemIdentifierOf(home.data), owner, { kind: 'private' }, ctx);
  await serve(cluster, 'server', home.data, ctx);
  await ensureContent(cluster, driverContext(answersWithinMs, ctx.signal));
  await quiet(cluster, 'server', ctx);
}

async function planOf({ estate, spec }: Cluster, from: RestoreFrom): Promise<Plan> {
  const all = await backupsFound(estate, from.server_id);
  const source = homeOf(estate, from.server_id);
  const named = all.find(({ id }) => id === from.backup_id);
  if (from.backup_id !== null && named === undefined) throw missing();
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
      `The backup is of PostgreSQL ${backup.version}; it cannot be restored into ${spec.version}.`,
    );
  return { backup, timeline, until: from.until, source };
}

async function replay(cluster: Cluster, plan: Plan, draft: string, ctx: DriverContext): Promise<void> {
  const { estate, home } = cluster;
  await quiet(cluster, 'aside', ctx);
  await completeArchive(cluster, plan, ctx);
  const base = path.join(backupsOf(estate, plan.source.id), plan.backup.id, 'base');
  await run('tar', ['-xzf', path.join(base, 'base.tar.gz'), '-C', draft], ctx);
  await run('tar', ['-xzf', path.join(base, 'pg_wal.tar.gz'), '-C', path.join(draft, 'pg_wal')], ctx);
  await erase(asideOf(home).path, ctx);
  const aside: Cluster = { ...cluster, home: asideOf(home) };
  await furnish(aside.home);
  const archive = await fetchArchive(aside, plan, ctx);
  const owner = await giveData(cluster, draft, ctx);
  await giveFile(path.join(draft, 'recovery.signal'), '', owner);
  // The server aside sees its own home only: there is its copy of the archive.
  const target: Record<string, string> =
    plan.until === null ? { recovery_target: 'immediate' } : { recovery_target_time: withOffset(plan.until) };
  await play(aside, draft, { archive, timeline: plan.timeline, target }, ctx);
}

// To the target; where the log ends before it, all of the log is before it.
async function play(
  aside: Cluster,
  draft: string,
  { archive, timeline, target }: { archive: string; timeline: number; target: Record<string, string> },
  ctx: DriverContext,
): Promise<void> {
  const owner = await giveData(aside, draft, ctx);
  for (const wanted of [target, {}]) {
    const settings = {
      restore_command: `if test -f "${archive}/%f.gz"; then gzip -dc "${archive}/%f.gz" > "%p"; else cp "${archive}/%f" "%p"; fi`,
      recovery_target_timeline: timeline,
      recovery_target_action: 'promote',
      hot_standby: 'off',
      ...wanted,
    };
    await configure(aside, draft, await systemIdentifierOf(draft), owner, { kind: 'recovery', settings }, ctx);
    await serve(aside, 'aside', draft, ctx);
    const failure = await promoted(aside, draft, ctx);
    if (failure === null) return quiet(aside, 'aside', ctx);
    await quiet(aside, 'aside', ctx);
    if (!(await endedTooEarly(aside.home))) throw failure;
  }
  throw new DriverError('transient', 'The log of the server could not be played.');
}

// Z is the name of a time zone, and the server has not read those when it reads this.
function withOffset(time: string): string {
  return new Date(time).toISOString().replace('Z', '+00');
}

async function promoted(aside: Cluster, data: string, ctx: DriverContext): Promise<DriverError | null> {
  for (;;) {
    checkpoint(ctx);
    const isOpen = await inSession(aside, { data }, async (session) => {
      const { rows } = await session.query<{ follows: boolean }>('select pg_is_in_recovery() as follows');
      return rows[0]?.follows === false;
    }).catch((error: unknown) => {
      if (isUnavailable(error)) return false;
      throw error;
    });
    if (isOpen) return null;
    const end = await endOf(aside, 'aside');
    if (end !== null) return end;
    await sleep(100);
  }
}

async function endedTooEarly(home: Home): Promise<boolean> {
  for (let position: string | null = null, more = true; more;) {
    const chunk = await readLog(home, position);
    if (chunk.lines.some(({ text }) => text.includes('recovery ended before configured recovery target was reached')))
      return true;
    ({ position, more } = chunk);
  }
  return false;
}

// All that was committed up to now is in the archive. In place the server stops for it; the data of another one stay as they
// are. One that cannot be asked has what it has.
async function completeArchive(cluster: Cluster, { until, source, backup }: Plan, ctx: DriverContext): Promise<void> {
  if (until === null || typeof (await findHome(cluster.estate, source.id)) === 'string') return;
  if (!(await exists(source.data)) || (await systemIdentifierOf(source.data)) !== backup.system_identifier) return;
  const launched = await readNote<{ port: number }>(source, 'launched');
  const origin: Cluster = {
    ...cluster,
    home: source,
    spec: { ...cluster.spec, id: source.id, port: launched?.port ?? cluster.spec.port },
  };
  if (!(await isServing(origin))) return;
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
  if (source.id === cluster.spec.id) await quiet(cluster, 'server', ctx);
}

async function archived(file: string, ctx: DriverContext): Promise<void> {
  for (const end = Date.now() + archivedWithinMs; Date.now() < end; await sleep(100)) {
    checkpoint(ctx);
    if (await exists(file)) return;
  }
  throw new DriverError('transient', 'The log of the server has not got to its archive yet.', 10_000);
}

async function fetchArchive(aside: Cluster, { backup, source }: Plan, ctx: DriverContext): Promise<string> {
  const from = archiveDirectory(source, backup.system_identifier);
  const to = path.join(aside.home.path, 'archive', 'fetched');
  await mkdir(to, { mode: 0o700 });
  const isNeeded = (file: string) => file.includes('.history') || orderOf(file) >= orderOf(backup.wal_file);
  const inPlace = source.id === aside.home.id;
  for (const file of await namesIn(from, /^[0-9A-F]{8}.*\.gz$/)) {
    checkpoint(ctx);
    // The files of one user may be shared; those of another one become those of whoever gets them.
    if (isNeeded(file))
      await (inPlace
        ? link(path.join(from, file), path.join(to, file))
        : copyFile(path.join(from, file), path.join(to, file), constants.COPYFILE_FICLONE));
  }
  await fetchUnarchived(source, to, isNeeded);
  await giveData(aside, path.join(aside.home.path, 'archive'), ctx);
  return to;
}

// What a server that died had no time to archive.
async function fetchUnarchived(source: Home, to: string, isNeeded: (file: string) => boolean): Promise<void> {
  const log = path.join(source.data, 'pg_wal');
  for (const file of await namesIn(log, /^[0-9A-F]{24}$/)) {
    if (isNeeded(file) && !(await exists(path.join(to, `${file}.gz`))))
      await copyFile(path.join(log, file), path.join(to, file)).catch(absentIsNull);
  }
}

async function namesIn(directory: string, form: RegExp): Promise<string[]> {
  return ((await readdir(directory).catch(absentIsNull)) ?? []).filter((file) => form.test(file));
}

async function noteTurn({ home }: Cluster, plan: Plan): Promise<void> {
  const turns = await timelinesOf(plan.source);
  const timeline = await timelineIn(home.data);
  await noteTimeline(home, turns, {
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
