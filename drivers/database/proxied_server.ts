// Common parts of engines behind an access proxy: their program, the digests of their start, the files of their
// certificate, and replacement data.
import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { EngineFound } from '../../core/catalog/host_facts';
import type { DatabaseServer, RestoreFrom } from '../database';
import { absentIsNull } from '../../core/files';
import { DriverError } from '../../core/driver';
import type { DriverContext, Fingerprint } from '../../core/driver';
import { retryUntilReady } from '../hosted_server/readiness';
import { isReplacing, replaceData, type NextDisk } from '../hosted_server/replacement';
import {
  openServerDirectory,
  makeServerDirectory,
  ownerOf,
  readNote,
  removeServerDirectory,
  requireServerDirectory,
  writeFileFor,
  writeNote,
  type EngineContext,
  type ServerDirectory,
} from '../hosted_server/server_directory';
import type { BackupId } from '../hosted_server/stored_backups';
import { diskBytes } from './disk_size';

/** Digests of the configuration that a process was started with. */
export interface Started {
  settings: string;
  certificate: string;
}

/** File names in the configuration directory. */
export const certificateFiles = { certificate: 'server.crt', key: 'server.key' } as const;

const startedNote = 'started';
// A full server accepts writes again below this share of the limit.
const reopenShare = 0.9;

/** The program of a series. @throws DriverError unsupported */
export function requireProgram(
  { found, product }: { found: readonly EngineFound[]; product: string },
  version: string,
): EngineFound {
  const program = found.find(({ series }) => series === version);
  if (program === undefined)
    throw new DriverError('unsupported', `${product} ${version} is not installed on this host.`);
  return program;
}

/**
 * Whether the data directory contains the engine's data, or will again after a pending replacement.
 * @param isData by entry name
 */
export async function hasProxiedData(
  engine: EngineContext,
  id: string,
  isData: (name: string) => boolean,
): Promise<boolean> {
  const found = await openServerDirectory(engine, id);
  // A foreign directory is reported elsewhere.
  if (typeof found === 'string') return found === 'foreign';
  const entries = (await readdir(found.data).catch(absentIsNull)) ?? [];
  return entries.some(isData) || isReplacing(found);
}

/** The directory for a restore: created where the data were lost. @throws DriverError conflict */
export async function requireRestorable<Engine extends EngineContext>(
  engine: Engine,
  server: DatabaseServer,
  make: { hasData(engine: Engine, id: string): Promise<boolean>; setUp(data: string): Promise<void> },
  ctx: DriverContext,
): Promise<ServerDirectory> {
  const { id } = server;
  if (await make.hasData(engine, id)) return requireServerDirectory(engine, id);
  for (const purpose of ['setup', 'server']) await engine.runtime.destroy(`${id}.${purpose}`, ctx);
  await removeServerDirectory(engine, id, ctx);
  return makeServerDirectory(engine, id, ({ data }) => make.setUp(data), ctx, diskBytes(engine, server));
}

/** The backup to restore, of an engine without a log. @throws DriverError unsupported for a point in time */
export function requireBackupId({ server_id, backup_id, until }: RestoreFrom): BackupId {
  if (backup_id === null || until !== null)
    throw new DriverError('unsupported', 'The engine cannot go back to a point in time. Restore a backup.');
  return { serverId: server_id, backupId: backup_id };
}

export function serverFingerprint(product: string, series: string[]): Fingerprint {
  if (series.length > 0) return { healthy: true, reason: null, facts: { versions: series.join(', ') } };
  return { healthy: false, reason: `${product} is not installed on this host.`, facts: {} };
}

/** The difference between the running process and a start now: only `settings` need a restart. */
export async function startedDifference(
  serverDirectory: ServerDirectory,
  desired: Started,
): Promise<'settings' | 'certificate' | null> {
  const now = await readNote<Started>(serverDirectory, startedNote);
  if (now?.settings !== desired.settings) return 'settings';
  return now.certificate === desired.certificate ? null : 'certificate';
}

export function noteStarted(serverDirectory: ServerDirectory, started: Started): Promise<void> {
  return writeNote(serverDirectory, startedNote, started);
}

export async function writeCertificate(serverDirectory: ServerDirectory, { tls }: DatabaseServer): Promise<void> {
  const owner = await ownerOf(serverDirectory);
  await writeFileFor(path.join(serverDirectory.conf, certificateFiles.certificate), tls.certificate, owner);
  await writeFileFor(path.join(serverDirectory.conf, certificateFiles.key), tls.key, owner);
}

/** Whether a server must reject writes; `closed`: it does so now. */
export function isOverStorage(
  { gigabyteBytes }: Pick<EngineContext, 'gigabyteBytes'>,
  { storage_gb }: DatabaseServer,
  used: number,
  closed: boolean,
): boolean {
  return used > storage_gb * gigabyteBytes * (closed ? reopenShare : 1);
}

export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** A replacement: servers with the new and the old data, and how data are loaded and processes stopped. */
interface ServerReplacement {
  /** Key of the replacement, as in Replacement. */
  key: string;
  disk: NextDisk;
  now: DatabaseServer;
  before: DatabaseServer;
  fill(temporary: string): Promise<void>;
  start(server: DatabaseServer): Promise<void>;
  waitUntilReady(server: DatabaseServer): Promise<void>;
  stop(): Promise<void>;
  /** Loads data into the server with the new data, before its users exist. */
  load?(): Promise<void>;
}

/** As replaceData. A server that should not run is stopped afterwards. */
export async function replaceServerData(
  serverDirectory: ServerDirectory,
  { key, disk, now, before, fill, start, waitUntilReady, stop, load }: ServerReplacement,
  ctx: DriverContext,
): Promise<void> {
  await replaceData(
    serverDirectory,
    {
      key,
      disk,
      fill,
      stop,
      // Waits longer than for a normal start: loading large data takes minutes.
      verify: async () => {
        await retryUntilReady(
          () => start(now),
          () => waitUntilReady(now),
          ctx,
        );
        await load?.();
      },
      rollBack: async () => (before.running ? start(before) : undefined),
    },
    ctx,
  );
  if (!now.running) await stop();
}
