// What programs print about their version. Asking all of them takes a second of processor time, four where a version
// manager (pyenv, asdf) stands before each.
import { stat } from 'node:fs/promises';
import { driverContext } from '../driver';
import { CommandFailed, run } from './command';

/** A program that was replaced is asked at once. The file of a shim stays as it is when its version changes. */
const TRUSTED_FOR_MS = 600_000;

interface Output {
  at: number;
  identity: string;
  text: string | null;
}

const outputs = new Map<string, Output>();

/**
 * What the program prints, of the last ten minutes while its file is the same. Null if it failed, or printed nothing
 * within `withinMs`. Never throws.
 */
export async function versionOutput(file: string, args: readonly string[], withinMs: number): Promise<string | null> {
  const key = JSON.stringify([file, ...args]);
  const identity = await identityOf(file);
  const last = outputs.get(key);
  if (last?.identity === identity && Date.now() - last.at < TRUSTED_FOR_MS) return last.text;
  try {
    const text = await run(file, [...args], driverContext(withinMs));
    outputs.set(key, { at: Date.now(), identity, text });
    return text;
  } catch (error) {
    // One that was too slow, or was ended by a signal, may answer the next time.
    if (error instanceof CommandFailed && error.code !== null)
      outputs.set(key, { at: Date.now(), identity, text: null });
    else outputs.delete(key);
    return null;
  }
}

/** Of the file that a link leads to. */
async function identityOf(file: string): Promise<string> {
  const { dev, ino, size, mtimeMs, ctimeMs } = await stat(file).catch(() => ({}) as Record<string, undefined>);
  return [dev, ino, size, mtimeMs, ctimeMs].join(' ');
}

/** Whether a version, such as `7.0.15`, is `major.minor` or newer. */
export function isAtLeast(version: string, major: number, minor: number): boolean {
  const [first = 0, second = 0] = version.split('.').map(Number);
  return first > major || (first === major && second >= minor);
}
