// Makes a backup. The base counts as soon as it is complete: a dump that fails, which depends on the content of the
// database, is tried again without another base, and in the end costs the download alone.
import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { absentIsNull, replaceFileDurably } from '../../../../core/files';
import { DriverError, checkpoint } from '../../../../core/driver';
import type { DriverContext } from '../../../../core/driver';
import { CommandFailed } from '../../../../core/process/command';
import { failureTextOf } from '../../../../core/log/failure_text';
import { removeServerTree } from '../../../hosted_server/server_directory';
import type { DatabaseServer } from '../../../database';
import { backupsOf, systemIdentifierOf, type Cluster, type PostgresqlContext } from '../cluster';
import { connectionOf } from '../data';
import { runTool, type Programs } from '../programs';
import { inSession, type Session } from '../session';
import { manifestOf, type Manifest } from './known_backups';
import { timelineIn } from './timelines';

/** Pauses before further tries of a dump: a server may be restarting. */
const dumpAgainMs = [2_000, 20_000];
/** A table that a client has locked for itself is not waited for without an end. */
const lockedWithin = '300s';
const bytesPerLogId = 2 ** 32;

/** What a backup is made of: a server of this host or of the cluster, and programs of this host. */
export interface BackupSource {
  engine: PostgresqlContext;
  spec: Pick<DatabaseServer, 'id' | 'version' | 'database_name'>;
  /** Of the version of the server, or of a newer one. */
  programs: Programs;
  /** Gives arguments and variables with which programs connect as the administrator. */
  withConnection<T>(work: (connection: ToolConnection) => Promise<T>): Promise<T>;
  inSession<T>(work: (session: Session) => Promise<T>): Promise<T>;
  /** Of its data now. */
  identify(): Promise<Pick<Manifest, 'system_identifier' | 'timeline'>>;
}

interface ToolConnection {
  args: string[];
  env?: Record<string, string>;
}

/** A server of this host. */
export function sourceOn(cluster: Cluster): BackupSource {
  const { data } = cluster.serverDirectory;
  return {
    ...{ engine: cluster.engine, spec: cluster.spec, programs: cluster.programs },
    withConnection: (work) => work({ args: connectionOf(cluster) }),
    inSession: (work) => inSession(cluster, {}, work),
    identify: async () => ({
      system_identifier: await systemIdentifierOf(data),
      timeline: await timelineIn(data),
    }),
  };
}

/** Base backup files, relative to the backup. */
export const baseFiles = ['base/base.tar.gz', 'base/pg_wal.tar.gz'];

/** Files of a backup that is complete. */
export function filesOf({ dump }: Manifest): string[] {
  return [...baseFiles, 'base/backup_manifest', ...(dump === undefined ? ['dump'] : [])];
}

/** Makes what is missing of the backup. */
export async function makeBackup(source: BackupSource, backupId: string, ctx: DriverContext): Promise<Manifest> {
  const directory = path.join(backupsOf(source.engine, source.spec.id), backupId);
  const manifest = (await manifestOf(directory)) ?? (await makeBase(source, backupId, ctx));
  if (manifest.dump !== 'pending') return manifest;
  const dump_reason = await makeDump(source, manifest, path.join(directory, 'dump'), ctx);
  const { dump: _, snapshot, ...made } = manifest;
  const isQuiet = snapshot !== undefined && (await visibleTransactions(source).catch(() => null)) === snapshot;
  const whole: Manifest =
    dump_reason === null
      ? {
          ...made,
          ...(isQuiet && { is_quiet: 1 }),
          size_bytes: made.size_bytes + (await sizeOnDisk(path.join(directory, 'dump'))),
        }
      : { ...made, dump: 'failed', dump_reason };
  await replaceFileDurably(path.join(directory, 'manifest.json'), JSON.stringify(whole));
  return whole;
}

/** A new name for a directory of a backup that is being made, or removed. */
export function temporaryDirectoryOf(directory: string, backupId: string): string {
  return path.join(directory, `.temporary-${backupId}-${randomBytes(6).toString('hex')}`);
}

/** Removes what an interrupted creation or removal of the backup has left. */
export async function clearTemporary(directory: string, backupId: string, ctx: DriverContext): Promise<void> {
  for (const entry of (await readdir(directory).catch(absentIsNull)) ?? []) {
    if (entry.startsWith(`.temporary-${backupId}-`)) await removeServerTree(path.join(directory, entry), ctx);
  }
}

async function makeBase(source: BackupSource, backupId: string, ctx: DriverContext): Promise<Manifest> {
  const { programs, spec, engine } = source;
  const directory = backupsOf(engine, spec.id);
  await clearTemporary(directory, backupId, ctx);
  const temporary = temporaryDirectoryOf(directory, backupId);
  await mkdir(temporary, { mode: 0o700 });
  const base = path.join(temporary, 'base');
  // Asked before it is made, so that nothing can fail after it.
  const snapshot = await visibleTransactions(source);
  const { system_identifier } = await source.identify();
  const segmentBytes = await segmentBytesOf(source);
  await source.withConnection(({ args, env }) =>
    runTool(
      path.join(programs.bin, 'pg_basebackup'),
      ['-D', base, ...args, '-Ft', '-Z', '1', '-X', 'stream', '-c', 'fast', '-l', backupId, '-w'],
      { env },
      ctx,
    ),
  );
  const taken_at = new Date().toISOString();
  const sizes = await Promise.all(baseFiles.map(async (file) => sizeOnDisk(path.join(temporary, file))));
  const manifest: Manifest = {
    id: backupId,
    version: spec.version,
    system_identifier,
    ...(await startOf(base, segmentBytes)),
    taken_at,
    database_name: databaseOf(source),
    snapshot,
    size_bytes: sizes.reduce((sum, one) => sum + one, 0),
    dump: 'pending',
  };
  await writeFile(path.join(temporary, 'manifest.json'), JSON.stringify(manifest), { mode: 0o600, flush: true });
  await rename(temporary, path.join(directory, backupId));
  return manifest;
}

/** @returns why there is none, for users; null: it is there */
async function makeDump(
  source: BackupSource,
  manifest: Manifest,
  file: string,
  ctx: DriverContext,
): Promise<string | null> {
  const { programs, spec } = source;
  const { system_identifier, timeline } = await source.identify();
  const isSame =
    spec.version === manifest.version &&
    system_identifier === manifest.system_identifier &&
    timeline === manifest.timeline;
  if (!isSame) return 'The database was restored or upgraded before the dump was made.';
  const temporary = `${file}.new`;
  const how = ['-Fc', '-Z', '1', '-w', `--lock-wait-timeout=${lockedWithin}`, '-f', temporary];
  for (let tries = 0; ; tries += 1) {
    checkpoint(ctx);
    try {
      await rm(temporary, { force: true });
      await source.withConnection(({ args, env }) =>
        runTool(path.join(programs.bin, 'pg_dump'), [...args, ...how, '-d', manifest.database_name], { env }, ctx),
      );
      await rename(temporary, file);
      return null;
    } catch (error) {
      if (!(error instanceof CommandFailed) || error.code === null) throw error;
      await rm(temporary, { force: true });
      const pauseMs = dumpAgainMs[tries];
      if (pauseMs === undefined) return reasonOf(source, error);
      await sleep(pauseMs, undefined, { signal: ctx.signal }).catch(() => undefined);
    }
  }
}

async function reasonOf(source: BackupSource, error: CommandFailed): Promise<string> {
  const reason = failureTextOf(error.stderr) ?? error.message;
  const waits = await source
    .inSession(async (session) => {
      const { rows } = await session.query<{ waits: boolean }>(
        "select pending_restart as waits from pg_settings where name = 'max_locks_per_transaction'",
      );
      return rows[0]?.waits === true;
    })
    .catch(() => false);
  return waits && /max_locks_per_transaction/.test(reason)
    ? `${reason} A restart of the database raises the limit.`
    : reason;
}

function databaseOf({ spec }: Pick<BackupSource, 'spec'>): string {
  return spec.database_name ?? 'postgres';
}

function segmentBytesOf(source: BackupSource): Promise<number> {
  return source.inSession(async (session) => {
    const { rows } = await session.query<{ bytes: string }>(
      "select pg_size_bytes(current_setting('wal_segment_size'))::text as bytes",
    );
    return Number(rows[0]?.bytes);
  });
}

/** Those that only read have no id. */
function visibleTransactions(source: BackupSource): Promise<string> {
  return source.inSession(async (session) => {
    const { rows } = await session.query<{ id: string }>('select txid_current_snapshot()::text as id');
    return rows[0]?.id ?? '';
  });
}

// The name of a WAL file: timeline, and number of the segment (src/include/access/xlog_internal.h).
async function startOf(base: string, segmentBytes: number): Promise<Pick<Manifest, 'timeline' | 'wal_file'>> {
  const { 'WAL-Ranges': ranges } = JSON.parse(await readFile(path.join(base, 'backup_manifest'), 'utf8')) as {
    'WAL-Ranges': { Timeline: number; 'Start-LSN': string }[];
  };
  const [range] = ranges;
  if (range === undefined) throw new DriverError('transient', 'The backup does not say where it begins.');
  const [high = 0, low = 0] = range['Start-LSN'].split('/').map((part) => parseInt(part, 16));
  const segment = Math.floor(low / segmentBytes) % (bytesPerLogId / segmentBytes);
  const name = [range.Timeline, high, segment].map((part) => part.toString(16).toUpperCase().padStart(8, '0'));
  return { timeline: range.Timeline, wal_file: name.join('') };
}

async function sizeOnDisk(file: string): Promise<number> {
  const handle = await open(file, 'r');
  await handle.sync().finally(() => handle.close());
  return (await stat(file)).size;
}
