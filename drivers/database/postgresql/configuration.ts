// Configuration of a server: postgresql.conf, pg_hba.conf, pg_ident.conf and its certificate. Generated from the spec
// each time, and validated by the server before they replace the old files.
import os from 'node:os';
import path from 'node:path';
import { readFile, rm, stat } from 'node:fs/promises';
import { requireNetwork } from '../../allowed_source';
import { absentIsNull } from '../../../core/files';
import { DriverError } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { CommandFailed } from '../../../core/process/command';
import { writeFileFor, type EngineContext, type Owner } from '../../hosted_server/server_directory';
import type { DatabaseServer } from '../../database';
import { archiveDirectory, logDirectory, roles, socketDirectory, type Cluster } from './cluster';
import { runTool } from './programs';
import { walMegabytes } from '../disk_size';

/**
 * open: accepts clients. private: socket of the platform only. recovery: private, and restores WAL from `fetch`.
 * `limit` as in storage.ts.
 */
interface Mode {
  kind: 'open' | 'private' | 'recovery';
  limit?: 'none' | 'soft' | 'hard';
  settings?: Record<string, string | number>;
}

interface Sized {
  spec: DatabaseServer;
  engine: Pick<EngineContext, 'gigabyteBytes'>;
}

/** Connections reserved for the platform. */
const reservedConnections = 3;
/** How long queries of a replica may hold up its replay: that far behind it may be. */
// What is written is in the archive of the host within it, and in the repository of backups within a minute.
const ARCHIVED_WITHIN_SECONDS = 30;
const STANDBY_DELAY = '10min';
const configurationFile = 'postgresql.conf';

/** Quotes a value for postgresql.conf, where an unquoted path or address is a syntax error. */
export function quoted(value: string | number): string {
  const text = String(value);
  if (/[\0\r\n]/.test(text)) throw new DriverError('invalid', 'A setting of the server contains a line break.');
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/**
 * Writes changed files, and returns whether there were any.
 * @throws DriverError invalid where the server rejects them; the old files are kept then
 */
export async function configure(
  cluster: Cluster,
  data: string,
  systemIdentifier: string,
  owner: Owner,
  mode: Mode,
  ctx: DriverContext,
): Promise<'same' | 'changed'> {
  const { conf } = cluster.serverDirectory;
  const settings = Object.entries({ ...settingsOf(cluster, data, systemIdentifier, mode), ...mode.settings });
  const main = settings.map(([name, value]) => `${name} = ${quoted(value)}\n`).join('');
  const files: [string, string][] = [
    ['server.crt', cluster.spec.tls.certificate],
    ['server.key', cluster.spec.tls.key],
    ['pg_hba.conf', accessRules(cluster, mode)],
    ['pg_ident.conf', userMap(mode)],
  ];
  let changed = false;
  for (const [name, text] of files) changed = (await replace(path.join(conf, name), text, owner)) || changed;
  const file = path.join(conf, configurationFile);
  if (await isThere(file, main, owner)) return changed ? 'changed' : 'same';
  const temporary = `${file}.new`;
  await writeFileFor(temporary, main, owner);
  await requireUnderstood(cluster, data, temporary, owner, ctx);
  await writeFileFor(file, main, owner);
  await rm(temporary, { force: true });
  return 'changed';
}

/** Arguments of `postgres`. */
export function serverArguments(cluster: Cluster, data: string): string[] {
  return ['-D', data, '-c', `config_file=${path.join(cluster.serverDirectory.conf, configurationFile)}`];
}

/**
 * Settings are visible to every user, so they must not contain host paths: paths are relative to the data directory,
 * the working directory of the server and its commands.
 */
function settingsOf(
  cluster: Cluster,
  data: string,
  systemIdentifier: string,
  mode: Mode,
): Record<string, string | number> {
  const { spec, serverDirectory, programs } = cluster;
  const { conf } = serverDirectory;
  return {
    port: spec.port,
    listen_addresses: mode.kind === 'open' ? addresses(spec.allowed_sources) : '',
    unix_socket_directories: socketDirectory(serverDirectory),
    hba_file: path.join(conf, 'pg_hba.conf'),
    ident_file: path.join(conf, 'pg_ident.conf'),
    ssl: 'on',
    ssl_cert_file: path.relative(data, path.join(conf, 'server.crt')),
    ssl_key_file: path.relative(data, path.join(conf, 'server.key')),
    ssl_min_protocol_version: 'TLSv1.2',
    password_encryption: 'scram-sha-256',
    cluster_name: spec.id,
    lc_messages: 'C',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...sizes(cluster),
    ...logging(serverDirectory, programs.series),
    ...replication(cluster),
    ...(spec.preloaded && { shared_preload_libraries: spec.preloaded.join(',') }),
    // Changing archive_mode requires a restart, archive_command does not. An empty command would make WAL accumulate.
    archive_mode: 'on',
    archive_timeout: spec.archive ? ARCHIVED_WITHIN_SECONDS : 0,
    archive_command:
      mode.kind === 'recovery'
        ? ''
        : spec.archive
          ? archiveCommand(path.relative(data, archiveDirectory(serverDirectory, systemIdentifier)))
          : 'true',
    default_transaction_read_only: mode.limit === 'none' || mode.limit === undefined ? 'off' : 'on',
  };
}

/** What follows from the package. */
export function sizes({ spec, engine }: Sized): Record<string, string | number> {
  const { memory_mb: memory, max_connections: connections, cpus } = spec.size;
  // A replica with lower limits than its primary stops replaying (PostgreSQL, "Administrator's Overview" of hot
  // standby).
  const [most, workers] = [
    Math.max(connections, spec.replica_of?.size?.max_connections ?? 0),
    Math.max(cpus, spec.replica_of?.size?.cpus ?? 0) * 2,
  ];
  const storageMb = (spec.storage_gb * engine.gigabyteBytes) / 2 ** 20;
  const between = (low: number, value: number, high: number) => Math.floor(Math.max(low, Math.min(value, high)));
  return {
    max_connections: most + reservedConnections,
    superuser_reserved_connections: reservedConnections,
    // A dump, and whoever drops a schema, locks each table; 370 bytes for each lock. The same everywhere: a replica
    // stops replaying when its primary has more.
    max_locks_per_transaction: 1024,
    // An unauthenticated client occupies a connection slot.
    authentication_timeout: '10s',
    shared_buffers: `${between(16, memory / 4, 8192)}MB`,
    effective_cache_size: `${between(32, memory * 0.6, 1 << 20)}MB`,
    work_mem: `${between(1024, (memory * 1024) / 4 / connections, 64 * 1024)}kB`,
    maintenance_work_mem: `${between(16, memory / 16, 1024)}MB`,
    autovacuum_max_workers: memory < 1024 ? 2 : 3,
    max_worker_processes: between(4, workers, 16),
    max_parallel_workers: between(1, cpus, 16),
    max_parallel_workers_per_gather: between(0, cpus - 1, 4),
    // JIT compilation needs more memory than small packages have.
    jit: memory < 2048 ? 'off' : 'on',
    min_wal_size: '32MB',
    max_wal_size: `${walMegabytes(engine, spec)}MB`,
    checkpoint_timeout: '15min',
    // An inactive replica must not fill the disk of its primary.
    max_slot_wal_keep_size: `${between(64, storageMb / 4, 1 << 20)}MB`,
  };
}

// Since version 15 log lines are JSON objects, before that text, in the same files.
function logging(serverDirectory: Cluster['serverDirectory'], series: string): Record<string, string | number> {
  const destination = Number(series) >= 15 ? 'jsonlog' : 'stderr';
  return {
    logging_collector: 'on',
    log_destination: destination,
    log_directory: logDirectory(serverDirectory),
    log_filename: 'server-%Y%m%dT%H%M%S.log',
    log_file_mode: '0600',
    log_rotation_age: '1d',
    log_rotation_size: '8MB',
    log_min_duration_statement: '1s',
    log_lock_waits: 'on',
    log_line_prefix: '%m [%p] %u@%d %e ',
  };
}

function replication({ spec }: Cluster): Record<string, string | number> {
  const all = {
    wal_level: 'replica',
    max_wal_senders: 10,
    max_replication_slots: 10,
    hot_standby: 'on',
    wal_log_hints: 'on',
  };
  if (spec.replica_of === null) return all;
  const { port, password } = spec.replica_of;
  // Channel binding: a server that does not know the password cannot impersonate the primary.
  const primary = {
    host: '127.0.0.1',
    port,
    user: roles.replication,
    password,
    sslmode: 'require',
    channel_binding: 'require',
    application_name: spec.id,
    connect_timeout: 10,
  };
  const conninfo = Object.entries(primary)
    .map(([key, value]) => `${key}='${String(value).replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`)
    .join(' ');
  // Retry soon while the primary is busy or restarting: the default is five seconds.
  return {
    ...all,
    primary_conninfo: conninfo,
    primary_slot_name: spec.id,
    recovery_target_timeline: 'latest',
    wal_retrieve_retry_interval: '1s',
    // Reports take longer than the 30 s after which a server ends what stands in the way of replay. The primary keeps
    // rows that they still see, as it does for its own queries; what is left, such as ALTER TABLE, waits.
    hot_standby_feedback: 'on',
    max_standby_streaming_delay: STANDBY_DELAY,
    max_standby_archive_delay: STANDBY_DELAY,
  };
}

// Atomic. An existing file was archived by an attempt whose success was not recorded.
function archiveCommand(archive: string): string {
  const to = `"${archive}/%f"`;
  return (
    `test -f ${to}.gz || { mkdir -p "${archive}" && gzip -1 -c "%p" > ${to}.new && sync ${to}.new && mv ${to}.new ` +
    `${to}.gz; }`
  );
}

function addresses(sources: string[]): string {
  return sources.length === 0 ? 'localhost' : '*';
}

// The first matching line applies (PostgreSQL, "The pg_hba.conf File").
function accessRules({ spec }: Cluster, { kind }: Mode): string {
  const own = [`local all ${roles.admin} peer map=platform`, `local replication ${roles.admin} peer map=platform`];
  if (kind !== 'open') return `${[...own, `local all ${roles.loader} peer map=platform`].join('\n')}\n`;
  const name = spec.database_name ?? 'all';
  const everywhere = ['127.0.0.1/32', '::1/128', ...spec.allowed_sources.map(requireNetwork)];
  return `${[
    ...own,
    `hostssl replication ${roles.replication} 127.0.0.1/32 scram-sha-256`,
    `host all ${roles.admin},${roles.replication} all reject`,
    `local all ${roles.replication} reject`,
    // Poolers: only the user of the server and the platform can reach the socket.
    `local "${name}" all scram-sha-256`,
    // Which databases a user may connect to is a privilege: admins make further ones.
    ...everywhere.map((source) => `hostssl all all ${source} scram-sha-256`),
  ].join('\n')}\n`;
}

// For peer authentication, the server maps the uid of its client with its own /etc/passwd: in a sandbox, the only user
// is called `app` (drivers/runtime/sandbox/sandbox.ts).
function userMap({ kind }: Mode): string {
  const names = process.getuid?.() === 0 ? ['root'] : ['app', ...ownNames()];
  const mapped = kind === 'open' ? [roles.admin] : [roles.admin, roles.loader];
  return names.flatMap((name) => mapped.map((role) => `platform ${name} ${role}\n`)).join('');
}

/** Name of the user of this process; empty where the host has no name for it. */
function ownNames(): string[] {
  try {
    return [os.userInfo().username];
  } catch {
    return [];
  }
}

async function requireUnderstood(
  cluster: Cluster,
  data: string,
  temporary: string,
  owner: Owner,
  ctx: DriverContext,
): Promise<void> {
  const args = ['-C', 'port', '-D', data, '-c', `config_file=${temporary}`];
  try {
    await runTool(path.join(cluster.programs.bin, 'postgres'), args, { as: owner }, ctx);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    throw Object.assign(new DriverError('invalid', 'The server does not understand its configuration.'), {
      cause: error.stderr,
    });
  }
}

async function replace(file: string, text: string, owner: Owner): Promise<boolean> {
  if (await isThere(file, text, owner)) return false;
  await writeFileFor(file, text, owner);
  return true;
}

// Not if it is of another user, as after a restore of the whole installation on a machine with other ids.
async function isThere(file: string, text: string, owner: Owner): Promise<boolean> {
  const isReadable = process.getuid?.() !== 0 || (await stat(file).catch(absentIsNull))?.uid === owner.uid;
  return isReadable && (await textOf(file)) === text;
}

function textOf(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch(absentIsNull);
}
