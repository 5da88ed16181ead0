// Data directories: created by initdb, or as a copy of the primary.
import { chmod, chown, mkdir, rmdir } from 'node:fs/promises';
import path from 'node:path';
import { run } from '../../../core/process/command';
import { DriverError, checkpoint } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import {
  exists,
  openServerDirectory,
  writeFileFor,
  serverDirectoryOf,
  makeServerDirectory,
  ownerOf,
  readNote,
  requireServerDirectory,
  writeNote,
  type ServerDirectory,
} from '../../hosted_server/server_directory';
import { isReplacing, restorePreviousData, replaceData } from '../../hosted_server/replacement';
import { dataMajorOf, logDirectory, roles, socketDirectory, type Cluster, type PostgresqlContext } from './cluster';
import { initdbUser, requireTools, runTool, type Programs } from './programs';
import { assignOwner, stopPostgres } from './server';
import { inSession } from './session';
import type { DatabaseServer } from '../../database';
import { diskBytes } from '../disk_size';

// With continuous writes, one segment per minute is archived: small segments cost less.
const segmentMb = 4;

/** Creates the server directory where it is missing. @throws DriverError conflict */
export async function ensureServerDirectory(
  engine: PostgresqlContext,
  server: DatabaseServer,
  ctx: DriverContext,
): Promise<ServerDirectory> {
  const { id } = server;
  if ((await openServerDirectory(engine, id)) !== 'absent') return requireServerDirectory(engine, id);
  return makeServerDirectory(
    engine,
    id,
    async (temporary) => {
      await rmdir(temporary.data); // until there are data
      await makeDirectories(temporary);
    },
    ctx,
    diskBytes(engine, server),
  );
}

/**
 * Subdirectories beside the data. Only the server and the platform can reach the socket: the platform's tools run with
 * group 0.
 */
export async function makeDirectories(serverDirectory: ServerDirectory): Promise<void> {
  for (const one of ['conf', 'run', 'socket', 'archive'])
    await mkdir(path.join(serverDirectory.path, one), { recursive: true, mode: 0o700 });
  await mkdir(logDirectory(serverDirectory), { recursive: true, mode: 0o700 });
  for (const one of [serverDirectory.path, serverDirectory.conf]) await chmod(one, 0o711);
  await chmod(path.join(serverDirectory.path, 'socket'), 0o770);
}

/**
 * Ensures that data exist: creates them for a new server, and puts back data set aside by an interrupted restore or
 * upgrade.
 * @throws DriverError conflict where existing data were lost
 */
export async function ensureData(cluster: Cluster, ctx: DriverContext): Promise<void> {
  const { serverDirectory } = cluster;
  const making = cluster.spec.replica_of === null ? 'init' : 'clone';
  const isMade = (await readNote(serverDirectory, 'made')) !== null;
  if (isMade && (await isReplacing(serverDirectory))) {
    await stopPostgres(cluster, 'staging', ctx);
    await stopPostgres(cluster, 'server', ctx);
    await restorePreviousData(serverDirectory, ctx);
  }
  if ((await dataMajorOf(serverDirectory.data)) !== null && isMade) return;
  if (isMade) throw new DriverError('conflict', 'The data of this server are missing on the host. Restore a backup.');
  if ((await readNote(serverDirectory, 'restoring')) !== null)
    throw new DriverError('transient', 'This server gets its data from a backup. The restore has not finished yet.');
  await replaceData(
    serverDirectory,
    {
      key: making,
      disk: null,
      fill: (temporary) => (making === 'init' ? initialize(cluster, temporary, ctx) : clone(cluster, temporary, ctx)),
      stop: () => stopPostgres(cluster, 'server', ctx),
      verify: () => writeNote(serverDirectory, 'made', { version: cluster.spec.version }),
      rollBack: () => Promise.resolve(),
    },
    ctx,
  );
}

/** As EngineCapabilities.hasData. */
export async function hasData(engine: PostgresqlContext, id: string): Promise<boolean> {
  const found = await openServerDirectory(engine, id);
  // A foreign directory is reported elsewhere.
  if (typeof found === 'string') return found === 'foreign';
  if ((await readNote(found, 'made')) === null) return false;
  return (await dataMajorOf(found.data)) !== null || isReplacing(found);
}

/** A new, empty cluster owned by the server's user. The superuser has no password, and cannot log in with one. */
export async function initialize(cluster: Cluster, data: string, ctx: DriverContext): Promise<void> {
  const { programs } = cluster;
  checkpoint(ctx);
  if (initdbUser !== undefined) await chown(data, initdbUser.uid, initdbUser.gid);
  const args = ['-D', data, '--auth=reject', ...initdbArguments(programs), ...leftToUs];
  await runTool(path.join(programs.bin, 'initdb'), args, { as: initdbUser }, ctx);
  await assignOwner(cluster, data, ctx);
  await syncTree(data, ctx);
}

/** What is the same for all clusters. */
export function initdbArguments(version: Pick<Programs, 'series'>): string[] {
  return ['-U', roles.admin, ...dataFormatArguments(version)];
}

/** Arguments of initdb that say what the data are like. */
export function dataFormatArguments(version: Pick<Programs, 'series'>): string[] {
  return ['--data-checksums', '--encoding=UTF8', `--wal-segsize=${segmentMb}`, ...localeOf(version)];
}

// The builtin provider sorts identically on every machine, and after every upgrade of the C library; it exists since
// version 17.
function localeOf({ series }: Pick<Programs, 'series'>): string[] {
  return Number(series) >= 17
    ? ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
    : ['--locale=C', '--lc-ctype=C.UTF-8'];
}

/** A copy of the primary, which keeps its WAL for the replica from now on. */
async function clone(cluster: Cluster, data: string, ctx: DriverContext): Promise<void> {
  const { spec, programs, engine } = cluster;
  requireTools(programs, ['pg_basebackup']);
  const primary = primaryOf(engine, spec, programs);
  if (!(await exists(primary.serverDirectory.path)))
    throw new DriverError('conflict', 'The primary of this replica does not exist on this host.');
  await inSession(primary, {}, async (session) => {
    const { rowCount } = await session.query('select from pg_replication_slots where slot_name = $1', [spec.id]);
    if (rowCount === 0) await session.query('select pg_create_physical_replication_slot($1, true)', [spec.id]);
  });
  await runTool(
    path.join(programs.bin, 'pg_basebackup'),
    ['-D', data, ...connectionOf(primary), '-X', 'stream', '-c', 'fast', '-S', spec.id, '-w', ...leftToUs],
    {},
    ctx,
  );
  await assignOwner(cluster, data, ctx);
  await writeFileFor(path.join(data, 'standby.signal'), '', await ownerOf({ ...cluster.serverDirectory, data }));
  await syncTree(data, ctx);
}

// The tools sync a thousand files one by one, which takes minutes on a busy disk. sync(1) syncs the whole file system
// at once.
const canSync = process.platform === 'linux';
const leftToUs = canSync ? ['--no-sync'] : [];

/** Syncs what programs wrote without syncing. */
export async function syncTree(tree: string, ctx: DriverContext): Promise<void> {
  if (canSync) await run('sync', ['-f', '--', tree], ctx).catch(() => run('sync', [], ctx)); // busybox knows no -f
}

function primaryOf(engine: PostgresqlContext, spec: DatabaseServer, programs: Programs): Cluster {
  const { server_id: id, port } = spec.replica_of!;
  return {
    engine,
    programs,
    serverDirectory: serverDirectoryOf(engine, id),
    spec: { ...spec, id, port, replica_of: null },
  };
}

/** Arguments for PostgreSQL tools: the socket, and the role, usually the administrator. */
export function connectionOf({ serverDirectory, spec }: Cluster, role = roles.admin): string[] {
  return ['-h', socketDirectory(serverDirectory), '-p', String(spec.port), '-U', role];
}
