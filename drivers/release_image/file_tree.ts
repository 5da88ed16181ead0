// Files of a directory as entries of a layer, in byte order of their names. No symbolic link is followed, even if a
// program of the tenant replaces a directory by a link meanwhile: each directory is opened once, and its entries are
// reached through that descriptor.
import { constants, type Stats } from 'node:fs';
import { chmod, lstat, open, readdir, readlink, type FileHandle } from 'node:fs/promises';
import os from 'node:os';
import { limits } from '../../core/limits';
import { DriverError } from '../../core/driver';
import { ReleaseImageError } from './failure';
import type { TarEntry } from './tar_entry';

interface TreeOptions {
  /** Where the directory is in the image, without a slash at its beginning. */
  at: string;
  /** User and group of all entries. */
  owner: number;
  /** A directory of the host that files and links name, and where it is in the image. */
  moved: { from: string; to: string } | null;
}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
const CHUNK_BYTES = 256 * 1024;
const REWRITTEN_BYTES_MAX = 4 * 2 ** 20;
/**
 * They name where programs lie: what a build leaves for the shells (drivers/builder/build_script.ts), a virtual
 * environment, and what extensions of Python are compiled with.
 */
const REWRITTEN = /(?:^|\/)(?:\.platform\/profile|pyvenv\.cfg|_sysconfigdata_[^/]*\.py|[^/]*\.pc)$/;
/** Compiled files of Python hold the time of their source, which is another one in a layer: they would not be used. */
const COMPILED = '__pycache__';
/**
 * No set-user-id: nothing in a sandbox of a host has it either. All files have one user: who else may write, which is
 * what the umask of a builder changes, does not matter.
 */
const MODE_BITS = 0o1755;
const READABLE = 0o500;

interface Walk extends TreeOptions {
  /** Name of the first entry of each file that has several names. */
  links: Map<string, Buffer>;
  room: { files: number; bytes: number };
}

/** @throws ReleaseImageError if the tree is too large; DriverError transient if files change meanwhile */
export async function* treeEntries(directory: string, options: TreeOptions): AsyncGenerator<TarEntry> {
  const room = { files: limits.imageFilesMax, bytes: limits.imageBytesMax };
  const walk: Walk = { ...options, links: new Map(), room };
  const parts = options.at.split('/');
  for (const depth of parts.keys()) {
    const owner = depth === parts.length - 1 ? options.owner : 0;
    yield { name: Buffer.from(parts.slice(0, depth + 1).join('/')), type: 'directory', mode: 0o755, owner, size: 0 };
  }
  const handle = await open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    yield* entriesIn(walk, descriptorPathOf(handle, Buffer.from(directory)), Buffer.from(options.at), Buffer.alloc(0));
  } finally {
    await handle.close();
  }
}

/** @param place a path that leads to the directory whatever its names are now; @param below relative to the tree */
async function* entriesIn(walk: Walk, place: Buffer, at: Buffer, below: Buffer): AsyncGenerator<TarEntry> {
  const names = (await readdir(place, { encoding: 'buffer' })).sort((one, other) => Buffer.compare(one, other));
  for (const child of names) {
    const source = joined(place, child);
    const found = await lstat(source).catch(changed);
    const name = joined(at, child);
    const inside = below.length ? joined(below, child) : child;
    if (found.isDirectory()) {
      if (child.toString() === COMPILED) continue;
      takeRoom(walk, 0);
      yield { name, type: 'directory', mode: found.mode & MODE_BITS, owner: walk.owner, size: 0 };
      yield* entriesOfDirectory(walk, source, found, name, inside);
    } else yield* leafEntry(walk, source, found, name, inside);
  }
}

async function* entriesOfDirectory(
  walk: Walk,
  source: Buffer,
  found: Stats,
  name: Buffer,
  inside: Buffer,
): AsyncGenerator<TarEntry> {
  // Only root can read every directory; other users need the permission bits while they read it.
  const isOpen = process.getuid?.() === 0 || (found.mode & READABLE) === READABLE;
  if (!isOpen) await chmod(source, found.mode | READABLE).catch(changed);
  const handle = await openReadable(source, found, O_DIRECTORY);
  try {
    yield* entriesIn(walk, descriptorPathOf(handle, source), name, inside);
  } finally {
    await handle.close();
    if (!isOpen) await chmod(source, found.mode).catch(() => undefined);
  }
}

/** Sockets, pipes and devices are left out: they are nothing without the program that made them. */
async function* leafEntry(
  walk: Walk,
  source: Buffer,
  found: Stats,
  name: Buffer,
  inside: Buffer,
): AsyncGenerator<TarEntry> {
  const { owner, links } = walk;
  if (found.isSymbolicLink()) {
    takeRoom(walk, 0);
    const target = movedTarget(walk, (await readlink(source, { encoding: 'buffer' }).catch(changed)) as Buffer);
    yield { name, type: 'symlink', mode: 0o777, owner, size: 0, target };
    return;
  }
  if (!found.isFile()) return;
  const mode = found.mode & MODE_BITS;
  const key = `${found.dev}:${found.ino}`;
  const first = found.nlink > 1 ? links.get(key) : undefined;
  takeRoom(walk, first ? 0 : found.size);
  if (first) {
    yield { name, type: 'link', mode, owner, size: 0, target: first };
    return;
  }
  if (found.nlink > 1) links.set(key, name);
  const text = await rewrittenText(walk, source, found, inside);
  if (text === null) yield { name, type: 'file', mode, owner, size: found.size, content: () => read(source, found) };
  else yield { name, type: 'file', mode, owner, size: text.length, content: () => once(text) };
}

function takeRoom({ room }: Walk, bytes: number): void {
  room.files -= 1;
  room.bytes -= bytes;
  if (room.files < 0)
    throw new ReleaseImageError(`The files of the release are too many for an image (${limits.imageFilesMax}).`);
  if (room.bytes < 0)
    throw new ReleaseImageError(
      `The files of the release are too large for an image (${limits.imageBytesMax / 2 ** 30} GiB).`,
    );
}

function movedTarget({ moved }: Walk, target: Buffer): Buffer {
  const text = target.toString('latin1');
  if (moved === null || !text.startsWith(`${moved.from}/`)) return target;
  return Buffer.from(`${moved.to}${text.slice(moved.from.length)}`, 'latin1');
}

async function rewrittenText({ moved }: Walk, source: Buffer, found: Stats, inside: Buffer): Promise<Buffer | null> {
  if (moved === null || found.size > REWRITTEN_BYTES_MAX || !REWRITTEN.test(inside.toString('latin1'))) return null;
  const chunks: Buffer[] = [];
  for await (const chunk of read(source, found)) chunks.push(chunk);
  return Buffer.from(Buffer.concat(chunks).toString('latin1').replaceAll(moved.from, moved.to), 'latin1');
}

async function* once(text: Buffer): AsyncGenerator<Buffer> {
  yield await Promise.resolve(text);
}

/** Exactly the bytes that its header says, or nothing at all. */
async function* read(source: Buffer, found: Stats): AsyncGenerator<Buffer> {
  const handle = await openReadable(source, found, O_NONBLOCK);
  try {
    const { ino, dev } = await handle.stat();
    if (ino !== found.ino || dev !== found.dev) changed();
    for (let left = found.size; left > 0;) {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(Math.min(CHUNK_BYTES, left)));
      if (bytesRead === 0) changed();
      left -= bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

/** Files of mode 0000 belong to the release too; only root can read them without a change of mode. */
async function openReadable(source: Buffer, { mode }: Stats, flags: number): Promise<FileHandle> {
  const opening = (): Promise<FileHandle> => open(source, O_RDONLY | O_NOFOLLOW | flags);
  try {
    return await opening();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') changed();
    await chmod(source, mode | READABLE).catch(changed);
    return await opening()
      .catch(changed)
      .finally(() => chmod(source, mode).catch(() => undefined));
  }
}

function changed(): never {
  throw new DriverError('transient', 'Files of the release changed while its image was made.');
}

/** Linux leads to what a descriptor is open on, whatever its path has become. */
function descriptorPathOf(handle: FileHandle, path: Buffer): Buffer {
  return os.platform() === 'linux' ? Buffer.from(`/proc/self/fd/${handle.fd}`) : path;
}

function joined(directory: Buffer, name: Buffer): Buffer {
  return Buffer.concat([directory, Buffer.from('/'), name]);
}
