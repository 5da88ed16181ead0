// What replacements of the files of a volume have in common: a note in the directory of the volume says that the new
// files are complete, and that they are in place. The directory belongs to the platform: tenants reach only the files.
import { readFile, rm, statfs } from 'node:fs/promises';
import path from 'node:path';
import { DriverError } from '../../core/driver';
import { absentIsNull, replaceFileDurably } from '../../core/files';
import { gibibytesText } from '../../core/sentence';

const noteName = '.restore';

/** Left free for the others on the disk of the host. */
const RESERVE_BYTES = 256 * 2 ** 20;

export interface ReplacementNote {
  key: string;
  /** filled: the new files are complete. done: they are in place. */
  state: 'filled' | 'done';
  owners: string | null;
}

export async function readReplacement(home: string): Promise<ReplacementNote | null> {
  const text = await readFile(path.join(home, noteName), 'utf8').catch(absentIsNull);
  return text === null ? null : (JSON.parse(text) as ReplacementNote);
}

export async function noteReplacement(home: string, note: ReplacementNote): Promise<void> {
  await replaceFileDurably(path.join(home, noteName), JSON.stringify(note));
}

export async function forgetReplacement(home: string): Promise<void> {
  await rm(path.join(home, noteName), { force: true });
}

/** @throws DriverError capacity where the disk of the directory has less room */
export async function requireFreeBytes(directory: string, bytes: number, what: string): Promise<void> {
  const disk = await statfs(directory);
  const free = disk.bavail * disk.bsize;
  if (free >= bytes + RESERVE_BYTES) return;
  throw new DriverError(
    'capacity',
    `${what} needs ${gibibytesText(bytes)}, and the disk of the host has ${gibibytesText(free)} free. ` +
      'An operator has to free space.',
  );
}
