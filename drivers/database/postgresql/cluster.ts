// Shared context of one server. In addition to server_directory.ts, a server directory has
//   socket/   the socket, for the platform only        log/   the server log, on its disk
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
 * `running`: background work by name (background_work.ts). `imported`: servers whose backups in the store are known
 * here. `histories`: stored archive histories by name.
 */
export interface PostgresqlContext extends EngineContext {
  found: PostgresqlFound[];
  running: Map<string, BackgroundWork>;
  imported: Set<string>;
  histories: Map<string, string>;
  /** Imports that follow their source, by id. */
  followers: Map<string, { stop(): Promise<void>; hasEnded: boolean }>;
}

/** Context of all servers and backups below `directory`. */
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
    followers: new Map(),
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

/** Roles of the platform in each server. Names of users cannot start with these prefixes. */
export const roles = {
  admin: 'platform_admin',
  replication: 'platform_replication',
  owner: 'platform_owner',
  readers: 'platform_readers',
  writers: 'platform_writers',
  /** On staging servers of upgrades only (upgrades/loader.ts). */
  loader: 'platform_loader',
};

/** Limit of the operating system: a socket path has at most 107 bytes (unix(7)). */
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

/**
 * On the disk of the server, since its tenant fills the log. Older servers and staging servers have it beside the data.
 */
export function logDirectory({ path: home }: ServerDirectory): string {
  const beside = path.join(home, 'log');
  return existsSync(beside) ? beside : path.join(placeOfData(home), 'log');
}

export function archiveDirectory(serverDirectory: ServerDirectory, systemIdentifier: string): string {
  return path.join(serverDirectory.path, 'archive', systemIdentifier);
}

/** Directory of all backups of a server, which outlive it. */
export function backupsOf(engine: Pick<EngineContext, 'directory'>, serverId: string): string {
  return path.join(engine.directory, 'backups', serverDirectoryOf(engine, serverId).id);
}

/** Major version of the data; null where there are none. */
export async function dataMajorOf(data: string): Promise<string | null> {
  const text = await readFile(path.join(data, 'PG_VERSION'), 'utf8').catch(absentIsNull);
  return text === null ? null : text.trim();
}

/** The system identifier assigned by initdb: the first field of pg_control (src/include/catalog/pg_control.h). */
export async function systemIdentifierOf(data: string): Promise<string> {
  const control = await readFile(path.join(data, 'global/pg_control'));
  return (process.arch === 's390x' ? control.readBigUInt64BE(0) : control.readBigUInt64LE(0)).toString();
}
