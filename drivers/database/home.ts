// Where a server lives: <directory>/<server id>/ with the mark of its owner, and in it
//   data/  the server's own, of its user     conf/  what we write for it to read; made anew at each start
//   run/   the empty directory of its unit   *.json what we remember of it; nobody else reads that
// A home is made under a temporary name and renamed when whole, and renamed away before it is taken apart.
// Backups lie in <directory>/backups/<server id>/<backup id>/ and outlive the server.
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, mkdir, open, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { run } from '../command';
import { DriverError, checkpoint } from '../driver';
import type { DriverContext } from '../driver';
import type { EngineId } from '../database';
import type { RuntimeDriver } from '../runtime';

/** What a driver of an engine works with. `gigabyteBytes`: what one GB of `storage_gb` counts, 2^30 outside of tests. */
export interface Estate {
  directory: string;
  engine: EngineId | 'pgbouncer' | 'haproxy';
  runtime: RuntimeDriver;
  gigabyteBytes: number;
}

export interface Home {
  id: string;
  path: string;
  data: string;
  conf: string;
  run: string;
}

export interface Owner {
  uid: number;
  gid: number;
}

const markName = '.svc-owner';
// Others pass through to what is theirs, and do not look around.
const passable = 0o711;
// sockaddr_un(7): 108 bytes with the final zero.
const socketPathMax = 107;

/** @throws DriverError invalid for an id that no directory can be named after */
export function homeOf(estate: Pick<Estate, 'directory'>, id: string): Home {
  requireName(id);
  const at = path.join(estate.directory, id);
  return { id, path: at, data: path.join(at, 'data'), conf: path.join(at, 'conf'), run: path.join(at, 'run') };
}

/** What is at the name of this server. Reads only. */
export async function findHome(estate: Estate, id: string): Promise<Home | 'absent' | 'foreign'> {
  const home = homeOf(estate, id);
  const stats = await lstat(home.path).catch(absentIsNull);
  if (stats === null) return 'absent';
  return stats.isDirectory() && (await isMarked(home, estate)) ? home : 'foreign';
}

/** The home of a server that must be there. @throws DriverError conflict */
export async function requireHome(estate: Estate, id: string): Promise<Home> {
  const home = await findHome(estate, id);
  if (typeof home !== 'string') return home;
  throw new DriverError(
    'conflict',
    home === 'absent' ? 'The server is not there.' : 'Something else has the name of this server; it was left alone.',
  );
}

/** Makes a home: `fill` works under a temporary name, one rename makes it real. @throws DriverError conflict */
export async function makeHome(
  estate: Estate,
  id: string,
  fill: (draft: Home) => Promise<void>,
  ctx: DriverContext,
): Promise<Home> {
  await mkdir(estate.directory, { recursive: true, mode: passable });
  await clearLeftOvers(estate, id, ctx);
  const name = temporaryName(estate, 'new', id);
  const at = path.join(estate.directory, name);
  const draft: Home = {
    id,
    path: at,
    data: path.join(at, 'data'),
    conf: path.join(at, 'conf'),
    run: path.join(at, 'run'),
  };
  await mkdir(at, { mode: passable });
  for (const one of [draft.data, draft.conf, draft.run]) await mkdir(one, { mode: 0o700 });
  await fill(draft);
  await writeFile(path.join(at, markName), JSON.stringify({ owner_id: id, driver: estate.engine }), {
    mode: 0o600,
    flush: true,
  });
  const home = homeOf(estate, id);
  if ((await lstat(home.path).catch(absentIsNull)) !== null)
    throw new DriverError('conflict', 'Something else has the name of this server; it was left alone.');
  await rename(at, home.path);
  return home;
}

/** Takes a home and its left-overs away. Absent is success, and so is foreign, which is left alone. */
export async function removeHome(estate: Estate, id: string, ctx: DriverContext): Promise<void> {
  const home = await findHome(estate, id);
  if (typeof home !== 'string')
    await rename(home.path, path.join(estate.directory, temporaryName(estate, 'trash', id)));
  await clearLeftOvers(estate, id, ctx);
}

/** Ids of all homes of the engine, left-overs of interrupted calls included. */
export async function listHomes(estate: Estate): Promise<string[]> {
  const entries = (await readdir(estate.directory).catch(absentIsNull)) ?? [];
  const ids = await Promise.all(
    entries.map(async (entry) => {
      if (entry.startsWith('.')) return leftOver(estate, entry);
      return isName(entry) && (await isMarked(homeOf(estate, entry), estate)) ? entry : null;
    }),
  );
  return [...new Set(ids.filter((id) => id !== null))];
}

/** A place for the socket that only we and the server reach. @throws DriverError unsupported */
export function socketOf(home: Home): string {
  const socket = path.join(home.data, 'admin.sock');
  if (Buffer.byteLength(socket) <= socketPathMax) return socket;
  throw new DriverError(
    'unsupported',
    'The path of the data directory is too long for the sockets of database servers. Choose a shorter DATA_DIR.',
  );
}

/** The user whom the runtime gave the data to. */
export async function ownerOf(home: Home): Promise<Owner> {
  const { uid, gid } = await lstat(home.data);
  return { uid, gid };
}

/** Replaces a file in a directory that may belong to another user, for that user to read: no link there is followed. */
export async function giveFile(file: string, content: string, owner: Owner): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  const handle = await open(
    draft,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    await handle.writeFile(content);
    if (process.getuid?.() === 0) await handle.chown(owner.uid, owner.gid);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, file);
}

/** What we remember of a server; null where there is nothing yet. */
export async function readNote<T>(home: Home, name: string): Promise<T | null> {
  const text = await readFile(path.join(home.path, `${name}.json`), 'utf8').catch(absentIsNull);
  return text === null ? null : (JSON.parse(text) as T);
}

export async function writeNote(home: Home, name: string, note: unknown): Promise<void> {
  const draft = path.join(home.path, `.${name}.${randomBytes(6).toString('hex')}`);
  await writeFile(draft, JSON.stringify(note), { mode: 0o600, flush: true });
  await rename(draft, path.join(home.path, `${name}.json`));
}

export async function removeNote(home: Home, name: string): Promise<void> {
  await rm(path.join(home.path, `${name}.json`), { force: true });
}

/** Bytes that a tree takes on its disk; what goes away meanwhile counts nothing. */
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

/** Deletes a tree; rm(1) follows no link that is put in its way. */
export async function erase(tree: string, ctx: DriverContext): Promise<void> {
  checkpoint(ctx);
  await run('rm', ['-rf', '--', tree], ctx);
}

export function exists(file: string): Promise<boolean> {
  return lstat(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => absentIsNull(error) !== null,
  );
}

export function absentIsNull(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
  throw error;
}

/** @throws DriverError invalid for what no directory can be named after */
export function requireName(id: string): void {
  if (!isName(id)) throw new DriverError('invalid', 'the id is not one that a directory can be named after');
}

function isName(id: string): boolean {
  return /^[a-z][a-z0-9_]{0,63}$/.test(id);
}

async function isMarked(home: Home, estate: Estate): Promise<boolean> {
  const text = await readFile(path.join(home.path, markName), 'utf8').catch(absentIsNull);
  return text === JSON.stringify({ owner_id: home.id, driver: estate.engine });
}

async function clearLeftOvers(estate: Estate, id: string, ctx: DriverContext): Promise<void> {
  for (const entry of (await readdir(estate.directory).catch(absentIsNull)) ?? []) {
    if (leftOver(estate, entry) === id) await erase(path.join(estate.directory, entry), ctx);
  }
}

function temporaryName(estate: Estate, purpose: 'new' | 'trash', id: string): string {
  return `.${estate.engine}-${purpose}-${id}-${randomBytes(6).toString('hex')}`;
}

function leftOver(estate: Estate, entry: string): string | null {
  const parts = /^\.([a-z]+)-(?:new|trash)-([a-z0-9_]+)-[0-9a-f]{12}$/.exec(entry);
  return parts?.[1] === estate.engine ? (parts[2] ?? null) : null;
}
