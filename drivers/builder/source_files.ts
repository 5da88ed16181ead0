// Reads files of a source without leaving it: a link to the outside is treated as missing.
import { open, readFile, readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { BuildError } from '../builder';

/** A directory above the root directory, within the source. */
export interface Place {
  files: SourceFiles;
  /** Relative path from the root directory: `../..`. Physical: the root directory may be a link. */
  up: string;
  /** Relative path to the root directory: `apps/web`. */
  below: string;
}

export interface SourceFiles {
  /**
   * Text of a file; null for a missing file.
   * @param bytesMax default: 1 MB
   * @throws BuildError for an implausibly large file
   */
  read(name: string, bytesMax?: number): Promise<string | null>;
  /** The beginning of a file of any size; null for a missing file. */
  readHead(name: string): Promise<string | null>;
  has(name: string): Promise<boolean>;
  isDirectory(name: string): Promise<boolean>;
  /** Sorted names in a directory; empty for a missing directory. */
  names(directory: string): Promise<string[]>;
  /** The directories above, the nearest first; empty for the root of the source. */
  above(): Place[];
}

/** Of the entries of folders that a search for programs looks at: with the folder that exceeds them, all of it ends. */
export const SEARCHED_ENTRIES_MAX = 5000;
const BYTES_MAX = 1 << 20;
const HEAD_BYTES = 64 << 10;

/** The files below the root directory of a source. @throws BuildError where the source has no such directory */
export async function openFiles(source: string, rootDirectory: string): Promise<SourceFiles> {
  const whole = await realpath(source);
  const root = await within(whole, path.join(whole, rootDirectory));
  if (root === null || !(await stat(root)).isDirectory()) {
    throw new BuildError(
      `The source has no directory ${rootDirectory}. Check build.root_directory in the settings of the application.`,
    );
  }
  return filesOf(whole, root);
}

function filesOf(whole: string, root: string): SourceFiles {
  const find = (name: string): Promise<string | null> => within(whole, path.join(root, name));
  return {
    read: async (name, bytesMax = BYTES_MAX) => readText(await find(name), name, bytesMax),
    readHead: async (name) => readHead(await find(name)),
    has: async (name) => (await kindOf(await find(name))) === 'file',
    isDirectory: async (name) => (await kindOf(await find(name))) === 'directory',
    names: async (directory) => {
      const found = await find(directory);
      return found === null ? [] : (await readdir(found).catch(() => [])).sort();
    },
    above: () => above(whole, root),
  };
}

function above(whole: string, root: string): Place[] {
  const parts = path.relative(whole, root).split(path.sep).filter(Boolean);
  return parts.map((_, i) => {
    const up = Array.from({ length: i + 1 }, () => '..').join('/');
    return { files: filesOf(whole, path.join(root, up)), up, below: parts.slice(parts.length - i - 1).join('/') };
  });
}

/** The resolved path; null where it is missing, or outside of the source. */
async function within(whole: string, file: string): Promise<string | null> {
  const real = await realpath(file).catch(() => null);
  return real === whole || real?.startsWith(whole + path.sep) ? real : null;
}

async function kindOf(file: string | null): Promise<'file' | 'directory' | null> {
  const found = file === null ? null : await stat(file).catch(() => null);
  if (found?.isFile()) return 'file';
  return found?.isDirectory() ? 'directory' : null;
}

async function readText(file: string | null, name: string, bytesMax: number): Promise<string | null> {
  if (file === null || (await kindOf(file)) !== 'file') return null;
  if ((await stat(file)).size > bytesMax) throw new BuildError(`${name} is larger than ${bytesMax >> 20} MB.`);
  return decode(await readFile(file)).replace(/^\ufeff/, '');
}

async function readHead(file: string | null): Promise<string | null> {
  if (file === null || (await kindOf(file)) !== 'file') return null;
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return decode(buffer.subarray(0, bytesRead)).replace(/^\ufeff/, '');
  } finally {
    await handle.close();
  }
}

/** UTF-8, or UTF-16 with a byte order mark, as written by `>` in PowerShell. */
function decode(bytes: Buffer): string {
  const isWhole = bytes.length % 2 === 0;
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return bytes.toString('utf16le');
  if (bytes[0] === 0xfe && bytes[1] === 0xff && isWhole) return Buffer.from(bytes).swap16().toString('utf16le');
  return bytes.toString('utf8');
}
