// Startup configuration of a server, written before each start; the server never edits it.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { isAtLeast } from '../../../core/process/version_output';
import type { DatabaseServer } from '../../database';
import { certificateFiles } from '../proxied_server';
import { aclLines, followerOf } from './acl';

const mebibyte = 1 << 20;

export const fileNames = {
  config: 'redis.conf',
  ...certificateFiles,
  authority: 'primary.crt',
} as const;

/**
 * Bytes for data within the memory of the package: the rest is for the process itself, for pages modified during a
 * fork, and for connection buffers.
 */
export function dataMemoryBytes(spec: DatabaseServer): number {
  return Math.floor(spec.size.memory_mb * 0.7) * mebibyte;
}

const persistence = [
  'save ""',
  'appendonly yes',
  'appendfsync everysec',
  'aof-use-rdb-preamble yes',
  'auto-aof-rewrite-percentage 100',
  'auto-aof-rewrite-min-size 16mb',
  // Snapshots are made for backups only: a failed one must not stop writes.
  'stop-writes-on-bgsave-error no',
];

/** Where the files of a server are, and where it listens. */
export interface RedisPlace {
  data: string;
  conf: string;
  /** For the platform; null: it connects as clients do. */
  socket: string | null;
  /** In the syntax of `bind`. */
  addresses: string;
}

/**
 * Settings that require a restart, without users and passwords. `engineVersion` as reported by the server, e.g. 7.0.15.
 * noeviction: a database must not lose data; keys that may be removed have an expiry set by their owner.
 */
export function settings(spec: DatabaseServer, place: RedisPlace, engineVersion: string): string[] {
  const major = Number(engineVersion.split('.')[0]);
  const quotedPath = (name: string) => quoted(path.join(place.conf, name));
  return [
    `dir ${quoted(place.data)}`,
    ...(place.socket === null ? [] : [`unixsocket ${quoted(place.socket)}`, 'unixsocketperm 700']),
    'port 0',
    `tls-port ${spec.port}`,
    `bind ${place.addresses}`,
    'protected-mode no',
    'tcp-keepalive 60',
    `tls-cert-file ${quotedPath(fileNames.certificate)}`,
    `tls-key-file ${quotedPath(fileNames.key)}`,
    'tls-auth-clients no',
    'tls-protocols "TLSv1.2 TLSv1.3"',
    'tls-prefer-server-ciphers yes',
    // Plus the connections of the platform.
    `maxclients ${spec.size.max_connections + 16}`,
    `maxmemory ${dataMemoryBytes(spec)}`,
    'maxmemory-policy noeviction',
    ...persistence,
    'lazyfree-lazy-user-flush yes',
    'lazyfree-lazy-user-del yes',
    'repl-diskless-sync yes',
    'repl-diskless-sync-delay 0',
    'repl-ping-replica-period 1',
    `repl-backlog-size ${Math.max(1, Math.floor(spec.size.memory_mb / 64))}mb`,
    'daemonize no',
    'loglevel notice',
    'logfile ""',
    'always-show-logo no',
    'set-proc-title no',
    ...(major >= 7
      ? ['maxmemory-clients 10%', 'enable-debug-command no', 'enable-module-command no', 'enable-protected-configs no']
      : []),
    ...following(spec, place),
  ];
}

/**
 * Settings that are applied to a running server too, in the words of CONFIG GET; they follow `settings` and win.
 * - Events of keys are what programs would set themselves, but no rule limits CONFIG SET to a parameter: these ones, of
 *   expired, deleted and renamed keys, cost plain writes nothing (docs/decisions/0209).
 * - RESTORE checks what clients send: a damaged payload would reach the memory of the server.
 * - A server holds a value twice while a client sends it, and disconnects who needs more than this share of the memory
 *   for data: with 10 % the smallest package took no value of 10 MB. Beyond a quarter, all clients together could take
 *   what forks need. In bytes: a percentage is of `maxmemory`, which is 1 while a server has no storage left.
 */
export function liveSettings(spec: DatabaseServer): [name: string, value: string][] {
  return [
    ['notify-keyspace-events', 'gxE'],
    ['sanitize-dump-payload', 'clients'],
    ['maxmemory-clients', String(Math.floor(dataMemoryBytes(spec) / 4))],
  ];
}

/** The complete configuration, with users and passwords. */
export function configuration(spec: DatabaseServer, place: RedisPlace, engineVersion: string): string {
  const secret = spec.replica_of === null ? [] : [`masterauth ${quoted(spec.replica_of.password)}`];
  const live = liveSettings(spec).map((setting) => setting.join(' '));
  return [...settings(spec, place, engineVersion), ...live, ...secret, ...aclLines(spec), ''].join('\n');
}

function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&')}"`;
}

/** Of this host, in the syntax of `bind`. The prefix - (since 6.2) makes an address optional. */
export function loopback(engineVersion: string): string {
  return isAtLeast(engineVersion, 6, 2) ? '127.0.0.1 -::1' : '127.0.0.1';
}

// The certificate of the primary is pinned; public authorities are trusted as usual.
function following({ replica_of }: DatabaseServer, place: RedisPlace): string[] {
  if (replica_of === null) return [];
  const authorities = ['/etc/ssl/certs'].filter((directory) => existsSync(directory));
  return [
    'tls-replication yes',
    `replicaof 127.0.0.1 ${replica_of.port}`,
    `masteruser ${followerOf(replica_of.server_id)}`,
    'replica-read-only yes',
    `tls-ca-cert-file ${quoted(path.join(place.conf, fileNames.authority))}`,
    ...authorities.map((directory) => `tls-ca-cert-dir ${directory}`),
  ];
}
