// What all parts of the driver know of one server. Beside what server_directory.ts lays out, a server directory has
//   socket/   the socket of the platform: nobody else gets there        log/   what the server says, on its disk
//   archive/<system identifier>/   its write-ahead log, compressed, once it `archive`s
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull } from '../../../core/files';
import type { PostgresqlFound } from '../../../core/catalog/host_facts';
import type { DatabaseServer } from '../../database';
import { DriverError } from '../../../core/driver';
import { serverDirectoryOf, type EngineContext, type ServerDirectory } from '../../hosted_server/server_directory';
import { placeOfData } from '../../hosted_server/server_disk';
import type { Programs } from './programs';

/**
 * `running`: what goes on longer than one call, by its name (background_work.ts). `imported`: servers whose backups in
 * the store are known here. `histories`: what the store has of archives, by its name there.
 */
export interface PostgresqlContext extends EngineContext {
  found: PostgresqlFound[];
  running: Map<string, BackgroundWork>;
  imported: Set<string>;
  histories: Map<string, string>;
}

/** Of servers and backups below `directory`. */
export function postgresqlContext(
  options: Pick<PostgresqlContext, 'runtime' | 'directory' | 'found' | 'store' | 'disks'> & { gigabyteBytes?: number },
): PostgresqlContext {
  return {
    ...options,
    gigabyteBytes: options.gigabyteBytes ?? 2 ** 30,
    name: 'postgresql',
    running: new Map(),
    imported: new Set(),
    histories: new Map(),
  };
}

interface BackgroundWork {
  end: Promise<unknown>;
  stop: AbortController;
}

export interface Cluster {
  engine: PostgresqlContext;
  serverDirectory: ServerDirectory;
  spec: DatabaseServer;
  programs: Programs;
}

/** The roles that the platform makes in each server. Users cannot have names that begin like these. */
export const roles = {
  admin: 'platform_admin',
  replication: 'platform_replication',
  owner: 'platform_owner',
  readers: 'platform_readers',
  writers: 'platform_writers',
};

/** A setting of the operating system: 107 bytes are a path of a socket (unix(7)). */
const socketPathMax = 107;

/** @throws DriverError unsupported where PLATFORM_DATA_DIR is too long for sockets */
export function socketDirectory(serverDirectory: ServerDirectory): string {
  const directory = path.join(serverDirectory.path, 'socket');
  if (Buffer.byteLength(path.join(directory, '.s.PGSQL.65535')) <= socketPathMax) return directory;
  throw new DriverError(
    'unsupported',
    'The path of the data directory is too long for the sockets of database servers. Choose a shorter ' +
      '`PLATFORM_DATA_DIR`.',
  );
}

/** On the disk of the server: its tenant fills it. Servers from before the disks, and those aside, have it beside. */
export function logDirectory({ path: home }: ServerDirectory): string {
  const beside = path.join(home, 'log');
  return existsSync(beside) ? beside : path.join(placeOfData(home), 'log');
}

export function archiveDirectory(serverDirectory: ServerDirectory, systemIdentifier: string): string {
  return path.join(serverDirectory.path, 'archive', systemIdentifier);
}

/** Of all backups of a server; they outlive it. */
export function backupsOf(engine: Pick<EngineContext, 'directory'>, serverId: string): string {
  return path.join(engine.directory, 'backups', serverDirectoryOf(engine, serverId).id);
}

/** Major version of the data, null where there are none. */
export async function dataMajorOf(data: string): Promise<string | null> {
  const text = await readFile(path.join(data, 'PG_VERSION'), 'utf8').catch(absentIsNull);
  return text === null ? null : text.trim();
}

/** What initdb named these data once and for all: the first field of pg_control (src/include/catalog/pg_control.h). */
export async function systemIdentifierOf(data: string): Promise<string> {
  const control = await readFile(path.join(data, 'global/pg_control'));
  return (process.arch === 's390x' ? control.readBigUInt64BE(0) : control.readBigUInt64LE(0)).toString();
}
