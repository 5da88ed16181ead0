// The notes of an installation's networks: <directory>/<name>/ for each. The directory is created before all other
// parts of the network and removed last, so that networks of a killed process are found.
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { mkdir, readFile, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { DriverError } from '../../core/driver';
import { replaceFile } from '../../core/files';

const TAG_LETTERS = 6;

/** Names what an installation has on its host: two of them never meet. */
export function installationTag(directory: string): string {
  return createHash('sha256').update(realpathSync(directory)).digest('hex').slice(0, TAG_LETTERS);
}

/** @throws DriverError invalid for a name that no directory can have */
export function networkDirectoryOf(directory: string, name: string): string {
  if (!/^[a-z0-9][a-z0-9_-]{0,99}$/i.test(name))
    throw new DriverError('invalid', 'The name of the network cannot be the name of a directory.');
  return path.join(directory, name);
}

export async function listNetworkDirectories(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(() => []);
  return names.filter((name) => /^[a-z0-9]/i.test(name));
}

/** null where it has none yet. */
export async function readNetworkNote(directory: string, note: string): Promise<string | null> {
  const text = await readFile(path.join(directory, note), 'utf8').catch(() => null);
  return text === null || text === '' ? null : text.trim();
}

export async function writeNetworkNote(directory: string, note: string, text: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await replaceFile(path.join(directory, note), `${text}\n`);
}

export async function removeNetworkDirectory(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true });
}
