// A file tree with untrusted path names. No path leads out of it, and no link in it is ever followed: anything in the
// place of a needed directory is replaced by a directory.
import { lstat, mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { broken } from './manifest';
import { giveTo, ROOT, type UserRange } from './owners';

const PATH_BYTES_MAX = 4096;
const NAME_BYTES_MAX = 255;
const DEPTH_MAX = 256;

/** The parts of a name in an archive; empty for the root. @throws ImageError for a name that leads out of it */
export function partsOf(name: string): string[] {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..') || name.includes('\0')) throw broken('a layer has a file whose name leads out of the image');
  const isLong = Buffer.byteLength(name) > PATH_BYTES_MAX || parts.length > DEPTH_MAX;
  if (isLong || parts.some((part) => Buffer.byteLength(part) > NAME_BYTES_MAX))
    throw broken('a layer has a file whose name is too long');
  return parts;
}

export interface SafeTree {
  readonly root: string;
  /** Owners of its files; null: all files belong to one user. */
  readonly range: UserRange | null;
  /** The host path of the parts; creates all parent directories. */
  place(parts: readonly string[]): Promise<string>;
  /** The directory at the parts; created if missing, also in place of anything else. */
  directory(parts: readonly string[]): Promise<string>;
  /** Removes the entry at the parts. Does not follow links. */
  remove(parts: readonly string[]): Promise<void>;
  /** The host path of the entry at the parts if all parents are directories; null otherwise. */
  find(parts: readonly string[]): Promise<string | null>;
}

/** @param range new directories belong to the image's root user */
export function openSafeTree(root: string, range: UserRange | null): SafeTree {
  const known = new Set<string>(['']);
  const makeDirectory = async (name: string): Promise<void> => {
    if (known.has(name)) return;
    await ensureDirectory(path.join(root, name), range);
    known.add(name);
  };

  const tree: SafeTree = {
    ...{ root, range },
    async place(parts) {
      await tree.directory(parts.slice(0, -1));
      return path.join(root, ...parts);
    },
    async directory(parts) {
      if (!known.has(parts.join('/')))
        for (let depth = 1; depth <= parts.length; depth += 1) await makeDirectory(parts.slice(0, depth).join('/'));
      return path.join(root, ...parts);
    },
    async remove(parts) {
      const at = await tree.find(parts);
      if (at === null || parts.length === 0) return;
      await rm(at, { recursive: true, force: true });
      forget(known, parts.join('/'));
    },
    async find(parts) {
      for (let depth = 1; depth < parts.length; depth += 1) {
        const name = parts.slice(0, depth).join('/');
        if (known.has(name)) continue;
        const found = await lstat(path.join(root, name)).catch(() => null);
        if (!found?.isDirectory()) return null;
        known.add(name);
      }
      const at = path.join(root, ...parts);
      return (await lstat(at).catch(() => null)) ? at : null;
    },
  };
  return tree;
}

async function ensureDirectory(at: string, range: UserRange | null): Promise<void> {
  const found = await lstat(at).catch(() => null);
  if (found?.isDirectory()) return;
  if (found) await rm(at);
  await mkdir(at, { mode: 0o755 });
  await giveTo(range, at, ROOT);
}

function forget(known: Set<string>, name: string): void {
  for (const one of known) if (one === name || one.startsWith(`${name}/`)) known.delete(one);
}
