// Folders that settings name.
import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { StartupError } from './startup_error';

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

/** Whether there is something in a folder; false where the folder is missing. */
export function hasEntries(directory: string): boolean {
  return existsSync(directory) && readdirSync(directory).length > 0;
}

function mkdirOnce(folder: string, mode: number): void {
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    // Another process that starts at the same moment may be faster.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
