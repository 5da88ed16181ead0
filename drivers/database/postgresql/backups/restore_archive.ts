// WAL for a restore: completed by the server that wrote it, and copied for the staging server.
import { constants } from 'node:fs';
import { copyFile, link, mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { absentIsNull } from '../../../../core/files';
import { DriverError, checkpoint, driverContext } from '../../../../core/driver';
import type { DriverContext } from '../../../../core/driver';
import { exists, openServerDirectory, readNote, type ServerDirectory } from '../../../hosted_server/server_directory';
import { orderOf, type Manifest } from './known_backups';
import { archiveDirectory, systemIdentifierOf, type Cluster } from '../cluster';
import { fetchStored, hasStored, type History } from './stored_archive';
import { historyFile, type Timeline } from './timelines';
import { assignOwner, isPostgresRunning, stopPostgres, whenReady } from '../server';

const archivedWithinMs = 20_000;
const answersWithinMs = 60_000;

export interface RestorePlan {
  backup: Manifest;
  timeline: number;
  until: string | null;
  source: ServerDirectory;
  /** History of the cluster of the backup. `isStored`: it was written by another host. */
  history: History & { isStored: boolean };
}

// Archives all commits up to now. The server in place is stopped for this; the data of another server are unchanged.
// For a server that does not respond, the existing archive is used.
export async function completeArchive(
  cluster: Cluster,
  { until, source, backup }: RestorePlan,
  ctx: DriverContext,
): Promise<void> {
  if (until === null || typeof (await openServerDirectory(cluster.engine, source.id)) === 'string') return;
  if (!(await exists(source.data)) || (await systemIdentifierOf(source.data)) !== backup.system_identifier) return;
  const launched = await readNote<{ port: number }>(source, 'launched');
  const origin: Cluster = {
    ...cluster,
    serverDirectory: source,
    spec: { ...cluster.spec, id: source.id, port: launched?.port ?? cluster.spec.port },
  };
  if (!(await isPostgresRunning(origin))) return;
  await whenReady(
    origin,
    'server',
    {},
    async (session) => {
      // A commit after the target, so that the WAL does not end before it.
      await session.query('select pg_current_xact_id()');
      const { rows } = await session.query<{ file: string }>('select pg_walfile_name(pg_switch_wal()) as file');
      await archived(origin, backup.system_identifier, `${rows[0]?.file}.gz`, ctx);
    },
    driverContext(answersWithinMs, ctx.signal),
  );
  if (source.id === cluster.spec.id) await stopPostgres(cluster, 'server', ctx);
}

async function archived(
  { engine, serverDirectory }: Cluster,
  systemIdentifier: string,
  file: string,
  ctx: DriverContext,
): Promise<void> {
  const stored = { serverId: serverDirectory.id, systemIdentifier };
  const everyMs = engine.store ? 500 : 100;
  for (const end = Date.now() + archivedWithinMs; Date.now() < end; await sleep(everyMs)) {
    checkpoint(ctx);
    if (await exists(path.join(archiveDirectory(serverDirectory, systemIdentifier), file))) return;
    if (await hasStored(engine, stored, file, ctx)) return;
  }
  throw new DriverError('transient', 'The write-ahead log of the server has not reached its archive yet.', 10_000);
}

export async function fetchArchive(
  staging: Cluster,
  { backup, source, until, history }: RestorePlan,
  ctx: DriverContext,
): Promise<string> {
  const from = archiveDirectory(source, backup.system_identifier);
  const to = path.join(staging.serverDirectory.path, 'archive', 'fetched');
  await mkdir(to, { mode: 0o700 });
  const isNeeded = (file: string) => file.includes('.history') || orderOf(file) >= orderOf(backup.wal_file);
  const inPlace = source.id === staging.serverDirectory.id;
  for (const file of await namesIn(from, /^[0-9A-F]{8}.*\.gz$/)) {
    checkpoint(ctx);
    // Files of the same user can be hard-linked; files of another user are copied and change their owner. Files that
    // are missing by now are in the store.
    if (isNeeded(file))
      await (
        inPlace
          ? link(path.join(from, file), path.join(to, file))
          : copyFile(path.join(from, file), path.join(to, file), constants.COPYFILE_FICLONE)
      ).catch(absentIsNull);
  }
  await fetchStored(staging.engine, { serverId: source.id, backup, to, until }, ctx);
  await fetchUnarchived(source, to, isNeeded);
  await reserveTimelines(to, history.timelines);
  await assignOwner(staging, path.join(staging.serverDirectory.path, 'archive'), ctx);
  return to;
}

// The server takes the first number without a history file. A timeline that was begun while nothing was archived has
// none: WAL of two timelines would have the same names. An empty file says no more than a missing one.
async function reserveTimelines(to: string, timelines: readonly Timeline[]): Promise<void> {
  const present = await readdir(to);
  for (const { timeline } of timelines) {
    const name = historyFile(timeline);
    if (timeline > 1 && !present.some((file) => file === name || file === `${name}.gz`))
      await writeFile(path.join(to, name), '', { mode: 0o600 });
  }
}

// WAL that a crashed server could not archive, and histories of timelines from before the archive.
async function fetchUnarchived(
  source: ServerDirectory,
  to: string,
  isNeeded: (file: string) => boolean,
): Promise<void> {
  const log = path.join(source.data, 'pg_wal');
  for (const file of await namesIn(log, /^([0-9A-F]{24}|[0-9A-F]{8}\.history)$/)) {
    if (isNeeded(file) && !(await exists(path.join(to, `${file}.gz`))))
      await copyFile(path.join(log, file), path.join(to, file)).catch(absentIsNull);
  }
}

async function namesIn(directory: string, form: RegExp): Promise<string[]> {
  return ((await readdir(directory).catch(absentIsNull)) ?? []).filter((file) => form.test(file));
}
