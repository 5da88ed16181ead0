// File systems of this machine that hold given directories: how full they are.
import { readFile, statfs } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DiskUsed } from '../../core/catalog/installation_reports';

/** One of a server that has gone does not answer. */
const ANSWER_WITHIN_MS = 3_000;

/** Each file system once, by where it is mounted. Never throws: one that does not answer is left out. */
export async function fileSystemsOf(directories: readonly string[]): Promise<DiskUsed[]> {
  const mounts = await mountPoints();
  const wanted = [...new Set(directories.map((directory) => mountOf(path.resolve(directory), mounts)))].sort();
  return (await Promise.all(wanted.map(diskUsed))).filter((disk) => disk !== null);
}

async function mountPoints(): Promise<string[]> {
  const text = await readFile('/proc/self/mounts', 'utf8').catch(() => '');
  return text
    .split('\n')
    .flatMap((line) => line.split(' ')[1] ?? [])
    .map(unescaped);
}

/** The table writes white space and backslashes as octal numbers. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)));
}

/** The longest mount point above a directory. */
export function mountOf(directory: string, mounts: readonly string[]): string {
  const above = mounts.filter((mount) => mount === '/' || directory === mount || directory.startsWith(`${mount}/`));
  return above.reduce((longest, mount) => (mount.length > longest.length ? mount : longest), '/');
}

async function diskUsed(mount: string): Promise<DiskUsed | null> {
  const late = sleep(ANSWER_WITHIN_MS, null, { ref: false });
  const found = await Promise.race([statfs(mount).catch(() => null), late]);
  if (!found || found.blocks === 0) return null;
  const { bsize, blocks, bavail, bfree, files, ffree } = found;
  return {
    mount,
    // What is kept back for root is no room: `df` counts in the same way.
    size_bytes: (blocks - bfree + bavail) * bsize,
    used_bytes: (blocks - bfree) * bsize,
    ...(files > 0 ? { inodes: files, inodes_used: files - ffree } : { inodes: null, inodes_used: null }),
  };
}
