// Validates an archive without writing anything, and extracts its files.
import { constants } from 'node:fs';
import { link, mkdir, open, readdir, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { openSafeTree, type SafeTree } from '../../image/safe_tree';
import { diskFull, type DriverContext } from '../../../core/driver';
import { isFetchDiskFull } from '../failure';
import { walkArchive, type ArchiveLimits, type ArchiveTotals } from '../archive';
import type { ArchiveEntry } from './entry';

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** File modes as in Git. */
const [EXECUTABLE, PLAIN] = [0o755, 0o644];

/** Validates the whole archive. @throws SourceError for an invalid source */
export function checkArchive(file: string, limits: ArchiveLimits, ctx: DriverContext): Promise<ArchiveTotals> {
  return walkArchive(file, limits, drain, ctx);
}

async function drain({ kind, content }: ArchiveEntry): Promise<void> {
  if (kind !== 'file') return;
  for await (const piece of content()) void piece;
}

/**
 * Extracts the files of an archive into a directory; files of an interrupted call are removed first. No link in it is
 * ever followed. @throws SourceError, DriverError `capacity` for a full disk
 */
export async function unpackSource(
  file: string,
  directory: string,
  limits: ArchiveLimits,
  ctx: DriverContext,
): Promise<ArchiveTotals> {
  try {
    await mkdir(directory, { recursive: true });
    const old = await readdir(directory);
    await Promise.all(old.map((name) => rm(path.join(directory, name), { recursive: true, force: true })));
    const tree = openSafeTree(directory, null);
    return await walkArchive(file, limits, (entry) => write(tree, entry), ctx);
  } catch (error) {
    throw isFetchDiskFull(error) ? diskFull() : error;
  }
}

async function write(tree: SafeTree, entry: ArchiveEntry): Promise<void> {
  const { parts, targetParts, kind, target } = entry;
  if (kind === 'directory') return void (await tree.directory(parts));
  if (kind === 'link' && parts.join('/') === targetParts.join('/')) return;
  const at = await tree.place(parts);
  await tree.remove(parts);
  if (kind === 'symlink') return symlink(target, at);
  if (kind === 'link') return link(await tree.place(targetParts), at);
  await writeFile(at, entry);
}

async function writeFile(at: string, { content, isExecutable }: ArchiveEntry): Promise<void> {
  const file = await open(at, NEW_FILE, 0o600);
  try {
    for await (const piece of content()) await writeAll(file, piece);
    await file.chmod(isExecutable ? EXECUTABLE : PLAIN);
  } finally {
    await file.close();
  }
}

async function writeAll(file: Awaited<ReturnType<typeof open>>, piece: Buffer): Promise<void> {
  for (let at = 0; at < piece.length;) at += (await file.write(piece, at)).bytesWritten;
}
