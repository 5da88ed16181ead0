// Connection pools: PgBouncer in front of the socket of one PostgreSQL server, as the user of that server. It has
// password verifiers and no passwords: the proof of a client is passed on to the server (PgBouncer, "auth_type").
import path from 'node:path';
import { Client } from 'pg';
import { requireNetwork } from '../allowed_source';
import type { PooledServer } from '../database';
import type { ServerDirectory } from '../hosted_server/server_directory';
import { DriverError } from '../../core/driver';
import { isAtLeast } from '../../core/process/version_output';
import type { PoolDriver, PoolSpec } from '../endpoint';
import { openListener, type ListenerOptions } from './listener';
import type { ListenerProgram } from './program';

const fileNames = {
  settings: 'pgbouncer.ini',
  users: 'users.txt',
  access: 'hba.conf',
  certificate: 'server.crt',
  key: 'server.key',
};
const size = { memory_mb: 192, cpus: 1, max_connections: 0 };
/** Concurrent clients; each takes about 20 kB with TLS. */
const clientsMax = 1_000;
const answerWithinMs = 5_000;
// sockaddr_un(7): 108 bytes with the final zero.
const socketPathMax = 107;

/** Administrator at its socket: root has to log in by name, otherwise PgBouncer knows its own user. */
const administrator = process.getuid?.() === 0 ? 'root' : 'pgbouncer';

export function openPooler(options: ListenerOptions): PoolDriver {
  return openListener(program, options);
}

const program: ListenerProgram<PoolSpec> = {
  name: 'pgbouncer',
  missing: 'PgBouncer is not installed on this host. Install the package pgbouncer.',
  size,
  startup: ({ allowed_sources, server, database_name }) => [
    addressOf(allowed_sources),
    server?.socket_directory,
    server?.socket_key,
    server?.port,
    database_name,
  ],
  reloadable: ({ mode, size: connections, tls }) => [mode, connections, tls],
  rights: ({ allowed_sources, server }) => [
    ...allowed_sources,
    ...(server?.logins ?? []).map(({ username, verifier }) => `${username} ${verifier}`),
  ],
  files: (serverDirectory, spec, version) => ({
    [fileNames.certificate]: spec.tls.certificate,
    [fileNames.key]: spec.tls.key,
    [fileNames.access]: accessRules(spec),
    [fileNames.users]: users(serverOf(spec)),
    [fileNames.settings]: settings(serverDirectory, spec, version),
  }),
  arguments: ({ conf }) => [path.join(conf, fileNames.settings)],
  readable: (spec) => [serverOf(spec).socket_directory],
  reload: (serverDirectory, spec, sessions) =>
    asAdministrator(serverDirectory, spec, async (send) => {
      await send('RELOAD');
      if (sessions === 'stay') return;
      // Sessions opened between the two waits.
      await send(`KILL ${spec.database_name}`);
      await send(`RESUME ${spec.database_name}`);
    }),
  // 2026-01-31 12:00:00.123 UTC [2] WARNING C-0x55…: app/app@192.0.2.1:40000 pooler error: …
  logLine: (text) => {
    const [, level, message] =
      /^\S+ \S+ \S+ \[\d+\] (WARNING|ERROR|FATAL) (?:[CS]-0x[0-9a-f]+: )?(.*)$/.exec(text) ?? [];
    return level === undefined ? null : `${level}: ${message}`;
  },
};

function settings(serverDirectory: ServerDirectory, spec: PoolSpec, version: string): string {
  const server = serverOf(spec);
  const { database_name: name, mode, size: connections, port, allowed_sources } = spec;
  requireFreeName(name);
  const file = (one: keyof typeof fileNames) => path.join(serverDirectory.conf, fileNames[one]);
  const lines: Record<string, string | number> = {
    listen_addr: addressOf(allowed_sources),
    listen_port: port,
    unix_socket_dir: socketDirectory(serverDirectory, port),
    unix_socket_mode: '0700',
    auth_type: 'hba',
    auth_hba_file: file('access'),
    auth_file: file('users'),
    admin_users: administrator,
    client_tls_sslmode: 'require',
    client_tls_cert_file: file('certificate'),
    client_tls_key_file: file('key'),
    client_tls_protocols: 'secure',
    server_tls_sslmode: 'disable',
    pool_mode: mode,
    max_client_conn: clientsMax,
    // In seconds.
    client_login_timeout: 10,
    server_reset_query: 'DISCARD ALL',
    // Sent by common clients, and without an effect on results: numbers are whole in all supported versions. Others
    // are refused: a pool that ignored `search_path` or a timeout would do something else in silence.
    ignore_startup_parameters: 'extra_float_digits, jit',
    ...trackedParameters(server, version),
    // In seconds: the delay of a retry after a rejected login.
    server_login_retry: 0.2,
    log_connections: 0,
    log_disconnections: 0,
    log_stats: 0,
  };
  const database =
    `${name} = host=${quoted(server.socket_directory)} port=${server.port} dbname=${quoted(name)} ` +
    `pool_size=${connections} max_db_connections=${connections}`;
  return `[databases]\n${database}\n[pgbouncer]\n${Object.entries(lines)
    .map(([key, value]) => `${key} = ${lineOf(String(value))}\n`)
    .join('')}`;
}

// A pool can hold for each client what servers report when it changes. What they do not report would go to other
// clients with the connection.
function trackedParameters({ reports_search_path }: PooledServer, version: string): Record<string, string> {
  if (!isAtLeast(version, 1, 20)) return {};
  return { track_extra_parameters: reports_search_path ? 'IntervalStyle, search_path' : 'IntervalStyle' };
}

function requireFreeName(databaseName: string): void {
  if (databaseName === 'pgbouncer')
    throw new DriverError(
      'invalid',
      'A database called pgbouncer cannot be pooled, because the pooler itself has a database of that name.',
    );
}

// The first matching line applies, as in pg_hba.conf.
function accessRules({ database_name, allowed_sources }: PoolSpec): string {
  const places = ['127.0.0.1/32', '::1/128', ...allowed_sources.map(requireNetwork)];
  return [
    `local pgbouncer ${administrator} peer`,
    ...places.map((place) => `hostssl "${database_name}" all ${place} scram-sha-256`),
    '',
  ].join('\n');
}

// The administrator must be listed, and no password has this digest.
function users({ logins }: PooledServer): string {
  const lines = logins.map(({ username, verifier }) => [username, verifier] as const);
  return [[administrator, `md5${'0'.repeat(32)}`] as const, ...lines]
    .map(([name, secret]) => `${doubled(name)} ${doubled(secret)}\n`)
    .join('');
}

async function asAdministrator(
  serverDirectory: ServerDirectory,
  { port }: PoolSpec,
  work: (send: (command: string) => Promise<unknown>) => Promise<unknown>,
): Promise<void> {
  const client = new Client({
    host: socketDirectory(serverDirectory, port),
    port,
    user: administrator,
    database: 'pgbouncer',
    connectionTimeoutMillis: answerWithinMs,
    query_timeout: answerWithinMs,
  });
  client.on('error', () => undefined); // the current query reports it
  try {
    await client.connect();
    await work((command) => client.query(command));
  } finally {
    await client.end().catch(() => undefined);
  }
}

function serverOf({ server }: PoolSpec): PooledServer {
  if (server === null) throw new DriverError('invalid', 'The pooler has no server to connect to.');
  return server;
}

function addressOf(sources: string[]): string {
  return sources.length === 0 ? '127.0.0.1' : '*';
}

function socketDirectory({ data }: ServerDirectory, port: number): string {
  if (Buffer.byteLength(path.join(data, `.s.PGSQL.${port}`)) <= socketPathMax) return data;
  throw new DriverError(
    'unsupported',
    'The path of the data directory is too long for the sockets of poolers. Choose a shorter `PLATFORM_DATA_DIR`.',
  );
}

function quoted(value: string): string {
  return `'${lineOf(value).replaceAll("'", "''")}'`;
}

function doubled(value: string): string {
  return `"${lineOf(value).replaceAll('"', '""')}"`;
}

function lineOf(value: string): string {
  if (/[\0\r\n]/.test(value)) throw new DriverError('invalid', 'A setting of the pooler contains a line break.');
  return value;
}
