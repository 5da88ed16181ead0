// What all parts of the driver know of one server. Beside what home.ts lays out, a home has
//   socket/   the socket of the platform: nobody else gets there        log/   what the server says
//   archive/<system identifier>/   its write-ahead log, compressed, once it `archive`s
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { PostgresqlFound } from '../../../core/host_facts';
import type { ServerSpec } from '../../database';
import { DriverError } from '../../driver';
import { absentIsNull, homeOf, type Estate, type Home } from '../home';
import type { Programs } from './programs';

/** `working`: what goes on longer than one call, by its name (lasting.ts). */
export interface PostgresqlEstate extends Estate {
  found: PostgresqlFound[];
  working: Map<string, Working>;
}

export interface Working {
  end: Promise<unknown>;
  stop: AbortController;
}

export interface Cluster {
  estate: PostgresqlEstate;
  home: Home;
  spec: ServerSpec;
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

/** @throws DriverError unsupported where DATA_DIR is too long for sockets */
export function socketDirectory(home: Home): string {
  const directory = path.join(home.path, 'socket');
  if (Buffer.byteLength(path.join(directory, '.s.PGSQL.65535')) <= socketPathMax) return directory;
  throw new DriverError(
    'unsupported',
    'The path of the data directory is too long for the sockets of database servers. Choose a shorter DATA_DIR.',
  );
}

export function logDirectory(home: Home): string {
  return path.join(home.path, 'log');
}

export function archiveDirectory(home: Home, systemIdentifier: string): string {
  return path.join(home.path, 'archive', systemIdentifier);
}

/** Of all backups of a server; they outlive it. */
export function backupsOf(estate: Pick<Estate, 'directory'>, serverId: string): string {
  return path.join(estate.directory, 'backups', homeOf(estate, serverId).id);
}

/** Major version of the data, null where there are none. */
export async function majorOf(data: string): Promise<string | null> {
  const text = await readFile(path.join(data, 'PG_VERSION'), 'utf8').catch(absentIsNull);
  return text === null ? null : text.trim();
}

/** What initdb named these data once and for all: the first field of pg_control (src/include/catalog/pg_control.h). */
export async function systemIdentifierOf(data: string): Promise<string> {
  const control = await readFile(path.join(data, 'global/pg_control'));
  return (process.arch === 's390x' ? control.readBigUInt64BE(0) : control.readBigUInt64LE(0)).toString();
}
