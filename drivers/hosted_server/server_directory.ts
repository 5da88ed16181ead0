// Server directories: <directory>/<server id>/ with an ownership mark, and in it
//   data/  the data, owned by its user       conf/  generated configuration, written at each start
//   run/   the empty directory of its unit   *.json the platform's notes about it, private
// Where storage limits are enforced, data/ is on a disk (server_disk.ts): disk.ext4 mounted at disk/, with disk/data/.
// A server directory is made under a temporary name and renamed when complete, and renamed before it is deleted.
// Backups are in <directory>/backups/<server id>/<backup id>/ and outlive the server.
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull, replaceFile } from '../../core/files';
import { run } from '../../core/process/command';
import type { BackupStore } from '../backup_store';
import { DriverError, checkpoint } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
import type { RuntimeDriver } from '../runtime';
import { closeServerDisks, makeServerDisk, openServerDisk, placeOfData } from './server_disk';

/** Context of hosted server drivers. `gigabyteBytes`: bytes per GB of `storage_gb`, 2^30 except in tests. */
export interface EngineContext {
  directory: string;
  /** Name of the driver, used in ownership marks. */
  name: string;
  runtime: RuntimeDriver;
  gigabyteBytes: number;
  /** Store of backups; none: they are kept in the directory. */
  store?: BackupStore | null;
  /** New servers get disks, which enforce their size, where this host can mount them. */
  disks?: boolean;
}

export interface ServerDirectory {
  id: string;
  path: string;
  /** Current path of the data: on the server's disk, where it has one. */
  readonly data: string;
  conf: string;
  run: string;
}

export interface Owner {
  uid: number;
  gid: number;
}

const markName = '.svc-owner';
// Other users may traverse to their own directories, but not list this one.
const passable = 0o711;
// sockaddr_un(7): 108 bytes with the final zero.
const socketPathMax = 107;

/** @throws DriverError invalid for an id that is not a valid directory name */
export function serverDirectoryOf(engine: Pick<EngineContext, 'directory'>, id: string): ServerDirectory {
  requireName(id);
  const at = path.join(engine.directory, id);
  return {
    id,
    path: at,
    // Evaluated on each access: the data may move to a disk, or another one.
    get data() {
      return path.join(placeOfData(at), 'data');
    },
    conf: path.join(at, 'conf'),
    run: path.join(at, 'run'),
  };
}

/** The directory of this server, with its disk mounted. @throws DriverError where the mount fails */
export async function openServerDirectory(
  engine: EngineContext,
  id: string,
): Promise<ServerDirectory | 'absent' | 'foreign'> {
  const found = await findServerDirectory(engine, id);
  if (typeof found !== 'string') await openServerDisk(found.path);
  return found;
}

/** The directory of this server, for callers that need no data: its disk may not be mounted. Read-only. */
export async function findServerDirectory(
  engine: EngineContext,
  id: string,
): Promise<ServerDirectory | 'absent' | 'foreign'> {
  const serverDirectory = serverDirectoryOf(engine, id);
  const stats = await lstat(serverDirectory.path).catch(absentIsNull);
  if (stats === null) return 'absent';
  return stats.isDirectory() && (await isMarked(serverDirectory, engine)) ? serverDirectory : 'foreign';
}

/** The directory of an existing server. @throws DriverError conflict */
export async function requireServerDirectory(engine: EngineContext, id: string): Promise<ServerDirectory> {
  const serverDirectory = await openServerDirectory(engine, id);
  if (typeof serverDirectory !== 'string') return serverDirectory;
  throw new DriverError(
    'conflict',
    serverDirectory === 'absent'
      ? 'The server does not exist on this host.'
      : 'Files that do not belong to the platform have the name of this server. Nothing was changed.',
  );
}

/** Creates the parent directory, which the users of the servers traverse. */
export async function ensureDirectoryOfServers({ directory }: Pick<EngineContext, 'directory'>): Promise<void> {
  await mkdir(directory, { recursive: true, mode: passable });
}

/**
 * Creates the directory: `fill` works under a temporary name, and a rename completes it.
 * @param diskBytes size of the disk; null for a server without one
 * @throws DriverError conflict
 */
export async function makeServerDirectory(
  engine: EngineContext,
  id: string,
  fill: (temporary: ServerDirectory) => Promise<void>,
  ctx: DriverContext,
  diskBytes: number | null,
): Promise<ServerDirectory> {
  await ensureDirectoryOfServers(engine);
  await clearLeftOvers(engine, id, ctx);
  const name = temporaryName(engine, 'new', id);
  const at = path.join(engine.directory, name);
  await mkdir(at, { mode: passable });
  const temporary: ServerDirectory = {
    id,
    path: at,
    data: path.join(await makeServerDisk(engine, at, diskBytes, ctx), 'data'),
    conf: path.join(at, 'conf'),
    run: path.join(at, 'run'),
  };
  for (const one of [temporary.data, temporary.conf, temporary.run]) await mkdir(one, { mode: 0o700 });
  await fill(temporary);
  await writeFile(path.join(at, markName), JSON.stringify({ owner_id: id, driver: engine.name }), {
    mode: 0o600,
    flush: true,
  });
  const serverDirectory = serverDirectoryOf(engine, id);
  if ((await lstat(serverDirectory.path).catch(absentIsNull)) !== null)
    throw new DriverError(
      'conflict',
      'Files that do not belong to the platform have the name of this server. Nothing was changed.',
    );
  await rename(at, serverDirectory.path);
  return serverDirectoryOf(engine, id); // its disk exists now
}

/** Removes a directory and its remains. Absent is success, and so is a foreign directory, which is kept. */
export async function removeServerDirectory(engine: EngineContext, id: string, ctx: DriverContext): Promise<void> {
  const serverDirectory = await findServerDirectory(engine, id);
  if (typeof serverDirectory !== 'string')
    await rename(serverDirectory.path, path.join(engine.directory, temporaryName(engine, 'trash', id)));
  await clearLeftOvers(engine, id, ctx);
}

/** Ids of all servers of the engine, including remains of interrupted calls. */
export async function listServerDirectories(engine: EngineContext): Promise<string[]> {
  const entries = (await readdir(engine.directory).catch(absentIsNull)) ?? [];
  const ids = await Promise.all(
    entries.map(async (entry) => {
      if (entry.startsWith('.')) return leftOver(engine, entry);
      return isName(entry) && (await isMarked(serverDirectoryOf(engine, entry), engine)) ? entry : null;
    }),
  );
  return [...new Set(ids.filter((id) => id !== null))];
}

/** Path of a socket that only the platform and the server can reach. @throws DriverError unsupported */
export function socketOf(serverDirectory: ServerDirectory): string {
  const socket = path.join(serverDirectory.data, 'admin.sock');
  if (Buffer.byteLength(socket) <= socketPathMax) return socket;
  throw new DriverError(
    'unsupported',
    'The path of the data directory is too long for the sockets of database servers. Choose a shorter ' +
      '`PLATFORM_DATA_DIR`.',
  );
}

/** The user that owns the data. */
export async function ownerOf(serverDirectory: ServerDirectory): Promise<Owner> {
  const { uid, gid } = await lstat(serverDirectory.data);
  return { uid, gid };
}

/** Replaces a file in a directory that may belong to another user, for that user to read. */
export async function writeFileFor(file: string, content: string, owner: Owner): Promise<void> {
  await replaceFile(file, content, process.getuid?.() === 0 ? { owner } : {});
}

/** Reads a note about a server; null where there is none. */
export async function readNote<T>(serverDirectory: ServerDirectory, name: string): Promise<T | null> {
  const text = await readFile(path.join(serverDirectory.path, `${name}.json`), 'utf8').catch(absentIsNull);
  return text === null ? null : (JSON.parse(text) as T);
}

export async function writeNote(serverDirectory: ServerDirectory, name: string, note: unknown): Promise<void> {
  await replaceFile(path.join(serverDirectory.path, `${name}.json`), JSON.stringify(note));
}

export async function removeNote(serverDirectory: ServerDirectory, name: string): Promise<void> {
  await rm(path.join(serverDirectory.path, `${name}.json`), { force: true });
}

/** Disk usage of a tree in bytes; files removed during the walk are ignored. */
export async function usedBytes(tree: string): Promise<number> {
  const entries = await readdir(tree, { withFileTypes: true }).catch(() => []);
  const sizes = await Promise.all(
    entries.map(async (entry) => {
      const at = path.join(tree, entry.name);
      return entry.isDirectory()
        ? usedBytes(at)
        : lstat(at).then(
            ({ blocks }) => blocks * 512,
            () => 0,
          );
    }),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Deletes a tree; rm(1) does not follow links inserted concurrently. */
export async function removeServerTree(tree: string, ctx: DriverContext): Promise<void> {
  checkpoint(ctx);
  await run('rm', ['-rf', '--', tree], ctx);
}

export function exists(file: string): Promise<boolean> {
  return lstat(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => absentIsNull(error) !== null,
  );
}

/** @throws DriverError invalid for an id that is not a valid directory name */
export function requireName(id: string): void {
  if (!isName(id)) throw new DriverError('invalid', 'The id cannot be the name of a directory.');
}

function isName(id: string): boolean {
  return /^[a-z][a-z0-9_]{0,63}$/.test(id);
}

async function isMarked(serverDirectory: ServerDirectory, engine: EngineContext): Promise<boolean> {
  const text = await readFile(path.join(serverDirectory.path, markName), 'utf8').catch(absentIsNull);
  return text === JSON.stringify({ owner_id: serverDirectory.id, driver: engine.name });
}

async function clearLeftOvers(engine: EngineContext, id: string, ctx: DriverContext): Promise<void> {
  for (const entry of (await readdir(engine.directory).catch(absentIsNull)) ?? []) {
    if (leftOver(engine, entry) !== id) continue;
    await closeServerDisks(path.join(engine.directory, entry), ctx);
    await removeServerTree(path.join(engine.directory, entry), ctx);
  }
}

function temporaryName(engine: EngineContext, purpose: 'new' | 'trash', id: string): string {
  return `.${engine.name}-${purpose}-${id}-${randomBytes(6).toString('hex')}`;
}

function leftOver(engine: EngineContext, entry: string): string | null {
  const parts = /^\.([a-z]+)-(?:new|trash)-([a-z0-9_]+)-[0-9a-f]{12}$/.exec(entry);
  return parts?.[1] === engine.name ? (parts[2] ?? null) : null;
}
