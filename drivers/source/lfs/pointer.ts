// The pointer file of a large file in the repository.
// @see https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
import { lstat, readFile } from 'node:fs/promises';

export interface LargeFile {
  /** As bytes: names need not be UTF-8. */
  path: Buffer;
  /** SHA-256 of the content, in hexadecimal. */
  oid: string;
  /** Bytes. */
  size: number;
}

const POINTER_BYTES_MAX = 1024;
const VERSION = /^version https:\/\/git-lfs\.github\.com\/spec\/v1\n/;

/** The paths in the directory that are pointers: a file committed with its content is kept. */
export async function readPointers(directory: string, paths: readonly Buffer[]): Promise<LargeFile[]> {
  const found: LargeFile[] = [];
  for (const name of paths) {
    const file = Buffer.concat([Buffer.from(`${directory}/`), name]);
    const stats = await lstat(file).catch(() => null);
    if (!stats?.isFile() || stats.size > POINTER_BYTES_MAX) continue;
    const pointer = parsePointer(await readFile(file, 'utf8'));
    if (pointer) found.push({ path: file, ...pointer });
  }
  return found;
}

function parsePointer(text: string): Omit<LargeFile, 'path'> | null {
  const oid = /^oid sha256:([0-9a-f]{64})$/m.exec(text)?.[1];
  const size = Number(/^size (\d{1,15})$/m.exec(text)?.[1] ?? NaN);
  return VERSION.test(text) && oid !== undefined && Number.isSafeInteger(size) ? { oid, size } : null;
}
