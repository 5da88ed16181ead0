// Startup configuration of a server, written before each start.
import { createHash } from 'node:crypto';
import path from 'node:path';
import type { DatabaseServer } from '../../database';
import { certificateFiles } from '../proxied_server';
import type { AccountHost, Login } from './connection';

export const fileNames = {
  config: 'my.cnf',
  first: 'init.sql',
  ...certificateFiles,
} as const;

// Not a valid database name.
const TEMPORARY = '.tmp';

/** Where a server has its files, and where it listens. */
export interface MariadbPlace {
  data: string;
  conf: string;
  socket: string;
  addresses: string;
  /** Over the network, TLS is required. */
  tls: 'optional' | 'required';
}

/**
 * The platform's own user, who comes by the socket alone on a host. Bears the id of the server: to log in is to know
 * the server.
 */
export function adminOf(id: string): string {
  return `platform_${id}`;
}

export type ToolPurpose = 'dump' | 'load';

/** The account of a program of the engine that the platform runs. */
export function toolAccountOf(id: string, purpose: ToolPurpose): string {
  return `platform_${purpose}_${id}`;
}

/** All rights for the platform's own user. */
export function grantEverything(id: string, host: AccountHost): string {
  return `GRANT ALL PRIVILEGES ON *.* TO '${adminOf(id)}'@'${host}' WITH GRANT OPTION`;
}

/** In the data, and no database. A start makes it as the user of the server, which removes what its last run left. */
export function temporaryDirectory({ data }: Pick<MariadbPlace, 'data'>): string {
  return path.join(data, TEMPORARY);
}

/**
 * Settings that require a restart, without passwords. The defaults of MariaDB assume a dedicated machine (128 MB each
 * for InnoDB and Aria): with these settings a server of the smallest package takes 60 MB.
 */
export function settings(spec: DatabaseServer, place: MariadbPlace): string[] {
  const { memory_mb: memoryMb, max_connections: connections } = spec.size;
  const file = (name: string) => quoted(path.join(place.conf, name));
  return [
    '[mariadbd]',
    `datadir=${quoted(place.data)}`,
    `socket=${quoted(place.socket)}`,
    `pid-file=${quoted(path.join(place.data, 'server.pid'))}`,
    // Temporary tables and sort files of all engines count towards the disk of the server.
    `tmpdir=${quoted(temporaryDirectory(place))}`,
    `ignore_db_dirs=${TEMPORARY}`,
    `port=${spec.port}`,
    `bind-address=${place.addresses}`,
    'skip-name-resolve',
    `init-file=${file(fileNames.first)}`,
    `ssl_cert=${file(fileNames.certificate)}`,
    `ssl_key=${file(fileNames.key)}`,
    'tls_version=TLSv1.2,TLSv1.3',
    ...(place.tls === 'required' ? ['require_secure_transport=ON'] : []),
    // Plus the connections of the platform.
    `max_connections=${connections + 5}`,
    `max_user_connections=${connections}`,
    `innodb_buffer_pool_size=${bufferPoolMb(memoryMb)}M`,
    `innodb_log_file_size=${logFileMb(memoryMb)}M`,
    'innodb_log_buffer_size=4M',
    `innodb_temp_data_file_path=ibtmp1:12M:autoextend:max:${Math.max(128, spec.storage_gb * 256)}M`,
    'key_buffer_size=1M',
    'aria_pagecache_buffer_size=4M',
    'max_allowed_packet=64M',
    'performance_schema=OFF',
    'innodb_flush_log_at_trx_commit=1',
    'character-set-server=utf8mb4',
    'collation-server=utf8mb4_unicode_ci',
    // No access to files of the host.
    'local_infile=OFF',
    'symbolic-links=OFF',
    'secure_file_priv=/dev/null',
    'event_scheduler=OFF',
  ];
}

export function configuration(spec: DatabaseServer, place: MariadbPlace): string {
  return [...settings(spec, place), ''].join('\n');
}

/** Executed by the server before it accepts connections. */
export function firstStatements(spec: DatabaseServer, host: AccountHost): string {
  const admin = `'${adminOf(spec.id)}'@'${host}'`;
  return [
    `CREATE USER IF NOT EXISTS ${admin};`,
    `ALTER USER ${admin} IDENTIFIED BY PASSWORD '${hashOf(spec.admin_password)}';`,
    `${grantEverything(spec.id, host)};`,
    '',
  ].join('\n');
}

/** Configuration for mariadb-dump and mariadb, which read passwords from files. */
export function clientConfiguration(socket: string, { user, password }: Login): string {
  return [
    '[client]',
    `socket=${quoted(socket)}`,
    `user=${user}`,
    `password=${quoted(password)}`,
    'default-character-set=utf8mb4',
    // Not over a socket.
    'skip-ssl',
    '',
  ].join('\n');
}

/** In the format of mysql_native_password: SHA1 of SHA1. */
export function hashOf(password: string): string {
  const once = createHash('sha1').update(password).digest();
  return `*${createHash('sha1').update(once).digest('hex').toUpperCase()}`;
}

function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&')}"`;
}

function bufferPoolMb(memoryMb: number): number {
  return Math.floor(memoryMb * (memoryMb <= 512 ? 0.25 : 0.5));
}

export function logFileMb(memoryMb: number): number {
  return Math.min(512, Math.max(16, Math.floor(memoryMb / 16)));
}
