// Unpacks one layer into a separate directory (image-spec, layer.md). Files keep their permissions, and their owners if
// the host has a range of user ids for them; devices, pipes, capabilities and set-user-id bits of files are left out.
// Whiteouts, and hard links to files of lower layers, are only recorded, since the lower layers are not here.
import { constants } from 'node:fs';
import { chmod, link, lstat, open, symlink } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { extract, type Extract, type Header } from 'tar-stream';
import { limits } from '../../core/limits';
import { broken } from './manifest';
import { giveTo, rangeName, type UserRange } from './owners';
import { openSafeTree, partsOf, type SafeTree } from './safe_tree';

/** Metadata of a layer. Names are relative to the root, without a leading slash. */
export interface LayerRecord {
  /** Paths that the layer deletes from lower layers. */
  whiteouts: string[];
  /** Directories of which the lower layers show nothing. */
  opaque: string[];
  /** Hard links to files of lower layers. */
  links: { name: string; target: string }[];
  /** Permissions of directories that the layer lists; other directories are implied by their contents. */
  directories: Record<string, number>;
  /** Their users and groups, and the range that all files of the layer belong to; absent: to one user. */
  owners?: Record<string, [uid: number, gid: number]>;
  range?: string;
  files: number;
  bytes: number;
}

/** Remaining numbers of files and bytes for all layers of an image together. */
export interface Room {
  files: number;
  bytes: number;
}

const WHITEOUT = '.wh.';
const OPAQUE = '.wh..wh..opq';
const SYMLINK_BYTES_MAX = 4095;

/** @throws ImageError if the archive is no layer, or exceeds `room` */
export async function unpackLayer(
  tar: Readable,
  directory: string,
  room: Room,
  range: UserRange | null,
): Promise<LayerRecord> {
  const record: LayerRecord = {
    ...{ whiteouts: [], opaque: [], links: [], directories: {}, files: 0, bytes: 0 },
    ...(range && { owners: {}, range: rangeName(range) }),
  };
  const state = { tree: openSafeTree(directory, range), record, room };
  const entries = extract();
  // A broken stream ends the entries, which then throw.
  tar.on('error', (error) => entries.destroy(error));
  tar.pipe(entries);
  try {
    for await (const entry of entries) {
      takeRoom(state, entry.header);
      await unpackEntry(state, entry);
      entry.resume();
    }
  } catch (error) {
    tar.unpipe(entries);
    throw asBroken(error);
  }
  return record;
}

type Entry = Extract extends AsyncIterable<infer One> ? One : never;

interface State {
  tree: SafeTree;
  record: LayerRecord;
  room: Room;
}

function takeRoom({ record, room }: State, { size = 0 }: Header): void {
  record.files += 1;
  record.bytes += size;
  room.files -= 1;
  room.bytes -= size;
  if (room.files < 0) throw broken(`it has more than ${limits.imageFilesMax} files`);
  if (room.bytes < 0) throw broken(`it is larger than ${limits.imageBytesMax / 2 ** 20} MiB`);
}

async function unpackEntry(state: State, entry: Entry): Promise<void> {
  const { tree, record } = state;
  const { name, type, linkname } = entry.header;
  const parts = partsOf(name);
  const last = parts.at(-1) ?? '';
  if (last.startsWith(WHITEOUT)) return noteWhiteout(record, parts);
  if (type === 'directory') {
    return unpackDirectory(state, parts, entry.header);
  }
  if (parts.length === 0) return;
  if (type === 'file' || type === 'contiguous-file') return writeEntry(tree, parts, entry);
  if (type === 'symlink') return makeSymlink(tree, parts, linkname ?? '', ownerOf(entry.header));
  if (type === 'link') return makeLink(state, parts, partsOf(linkname ?? ''));
}

/** Root of the image may enter and write all directories, as root does; one user for all needs the permissions. */
async function unpackDirectory({ tree, record }: State, parts: string[], header: Header): Promise<void> {
  const { mode = 0o755 } = header;
  const { uid, gid } = ownerOf(header);
  const permissions = tree.range === null ? (mode & 0o777) | 0o700 : mode & 0o3777;
  const at = await tree.directory(parts);
  await giveTo(tree.range, at, { uid, gid });
  await chmod(at, permissions);
  record.directories[parts.join('/')] = permissions;
  if (record.owners) record.owners[parts.join('/')] = [uid, gid];
}

function ownerOf({ uid, gid }: Header): { uid: number; gid: number } {
  return { uid: uid ?? 0, gid: gid ?? 0 };
}

function noteWhiteout({ whiteouts, opaque }: LayerRecord, parts: string[]): void {
  const last = parts.at(-1) ?? '';
  const above = parts.slice(0, -1);
  if (last === OPAQUE) return void opaque.push(above.join('/'));
  const hidden = last.slice(WHITEOUT.length);
  // Others with this beginning are notes of a file system of old (`.wh..wh.plnk`).
  if (hidden === '' || hidden === '.' || hidden === '..' || hidden.startsWith(WHITEOUT)) return;
  whiteouts.push([...above, hidden].join('/'));
}

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

async function writeEntry(tree: SafeTree, parts: string[], entry: Entry): Promise<void> {
  const at = await tree.place(parts);
  await tree.remove(parts);
  const file = await open(at, NEW_FILE, 0o600);
  try {
    for await (const chunk of entry) await file.write(chunk as Buffer);
    await giveTo(tree.range, at, ownerOf(entry.header));
    const mode = (entry.header.mode ?? 0o644) & 0o777;
    await file.chmod(tree.range === null ? mode | 0o600 : mode);
  } finally {
    await file.close();
  }
}

async function makeSymlink(
  tree: SafeTree,
  parts: string[],
  target: string,
  owner: { uid: number; gid: number },
): Promise<void> {
  if (target === '' || target.includes('\0') || Buffer.byteLength(target) > SYMLINK_BYTES_MAX)
    throw broken('a layer has a link that leads nowhere');
  const at = await tree.place(parts);
  await tree.remove(parts);
  await symlink(target, at);
  await giveTo(tree.range, at, owner);
}

/** A link to a file that is not in this layer is made when the layers come together. */
async function makeLink({ tree, record }: State, parts: string[], target: string[]): Promise<void> {
  const from = await tree.find(target);
  if (from === null) return void record.links.push({ name: parts.join('/'), target: target.join('/') });
  if ((await lstat(from)).isDirectory()) throw broken('a layer has a hard link to a directory');
  if (parts.join('/') === target.join('/')) return;
  const at = await tree.place(parts);
  await tree.remove(parts);
  await link(from, at);
}

/** Reports errors of tar-stream and zlib about damaged input as a defect of the image. */
function asBroken(error: unknown): unknown {
  const { code = '', message = '' } = error as NodeJS.ErrnoException;
  const isDamage = /^Z_/.test(code) || /tar|Unexpected end of data|premature|Writable stream closed/i.test(message);
  return isDamage && !(error as Error).name.includes('Image') ? broken('a layer is not a valid archive') : error;
}
