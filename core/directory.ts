// Folders that settings name.
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { StartupError } from './startup_error';

const PASSABLE = 0o711;

/**
 * Makes a folder and those above it. mkdir's own `recursive` is not used: below /proc it never returns.
 * @returns the topmost folder that was made, undefined where all were there
 * @throws StartupError where one can't be made, or something of that name is no folder
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
 * Makes a folder of the platform, as far as it is missing, through which other users can pass without listing it. As
 * root, PostgreSQL and the programs of tenants run as users of their own, and what they read lies below it. A folder
 * that was there before gets that permission too.
 * @throws StartupError where it can't be made
 */
export function makePassableDirectory(directory: string): void {
  makeDirectory(directory, PASSABLE);
  if (process.getuid?.() !== 0) return;
  const { mode } = statSync(directory);
  if ((mode & 0o001) === 0) chmodSync(directory, (mode & 0o7777) | 0o011);
}

/** Whether other users can enter a folder and all above it. */
export function isPassable(directory: string): boolean {
  return impassableFolders(directory).length === 0;
}

/** The command that lets other users enter a folder and all above it; null where they can, or it is missing. */
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

/** Whether there is something in a folder; false where the folder is missing. */
export function hasEntries(directory: string): boolean {
  return existsSync(directory) && readdirSync(directory).length > 0;
}

function mkdirOnce(folder: string, mode: number): void {
  try {
    mkdirSync(folder, { mode });
    // Whatever the umask is.
    chmodSync(folder, mode);
  } catch (error) {
    // Another process that starts at the same moment may be faster.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
