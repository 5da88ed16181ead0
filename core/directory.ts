// Directories named by settings.
import { chmodSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { StartupError } from './startup_error';

const PASSABLE = 0o711;

/**
 * Creates a directory and its parents. `recursive` of mkdir is not used: below /proc it never returns.
 * @returns the topmost created directory, undefined where all existed
 * @throws StartupError where one cannot be created, or the path is not a directory
 */
export function makeDirectory(directory: string, mode = 0o755): string | undefined {
  const missing: string[] = [];
  try {
    for (let folder = resolve(directory); !statSync(folder, { throwIfNoEntry: false }); folder = dirname(folder))
      missing.unshift(folder);
    for (const folder of missing) mkdirOnce(folder, mode);
    if (!statSync(directory).isDirectory()) throw new Error('it is not a folder');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new StartupError(`can't write in ${directory}: ${code ?? message}`);
  }
  return missing[0];
}

/**
 * Creates a directory of the platform that other users can traverse, but not list. As root, PostgreSQL and tenant
 * programs run as other users, and their files are below it. An existing directory gets the permission too.
 * @throws StartupError where it cannot be created
 */
export function makePassableDirectory(directory: string): void {
  makeDirectory(directory, PASSABLE);
  if (process.getuid?.() !== 0) return;
  const { mode } = statSync(directory);
  if ((mode & 0o001) === 0) chmodSync(directory, (mode & 0o7777) | 0o011);
}

/** Whether other users can traverse a directory and all its parents. */
export function isPassable(directory: string): boolean {
  return impassableFolders(directory).length === 0;
}

/** The command that makes a directory and its parents traversable; null where they are, or it is missing. */
export function passageCommand(directory: string): string | null {
  const folders = impassableFolders(directory);
  if (folders.length === 0) return null;
  return `chmod o+x ${folders.map((folder) => `'${folder.replaceAll("'", "'\\''")}'`).join(' ')}`;
}

function impassableFolders(directory: string): string[] {
  const above = dirname(directory) === directory ? [] : impassableFolders(dirname(directory));
  const mode = statSync(directory, { throwIfNoEntry: false })?.mode ?? 0;
  return mode & 0o001 ? above : [...above, directory];
}

/** Whether a directory has entries, or may have because it cannot be read; false where there is no directory. */
export function hasEntries(directory: string): boolean {
  try {
    return readdirSync(directory).length > 0;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code !== 'ENOENT' && code !== 'ENOTDIR';
  }
}

/** Whether two paths lead to one directory, also by a mount or a link. */
export function isSameDirectory(one: string, other: string): boolean {
  if (one === other) return true;
  try {
    const [a, b] = [statSync(one), statSync(other)];
    return a.dev === b.dev && a.ino === b.ino;
  } catch {
    return false;
  }
}

function mkdirOnce(folder: string, mode: number): void {
  try {
    mkdirSync(folder, { mode });
    // Regardless of the umask.
    chmodSync(folder, mode);
  } catch (error) {
    // Another process may have created it concurrently.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
