// Whether this data directory is still the installation: after a restore elsewhere it is not, and does no work.
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../core/config';
import { makePassableDirectory } from '../../core/directory';
import { replaceFileDurably } from '../../core/files';
import { backupDirectory } from './backup_journal';

type Place = Pick<Config, 'dataDir'>;

/** Who has taken the installation over, and when. */
export interface Successor {
  hostname: string;
  /** RFC 3339. */
  at: string;
}

export const ownerFile = (config: Place): string => path.join(backupDirectory(config), 'owner.json');
const successorFile = (config: Place): string => path.join(backupDirectory(config), 'taken-over.json');

/** The name under which this installation owns its repository; null: it has never backed up. */
export function readOwnId(config: Place): string | null {
  return (read(ownerFile(config)) as { id: string } | null)?.id ?? null;
}

/** A new name for this installation. It owns the repository once that has a mark of it. */
export async function saveNewOwnId(config: Place): Promise<string> {
  const id = randomUUID();
  makePassableDirectory(backupDirectory(config));
  await replaceFileDurably(ownerFile(config), JSON.stringify({ id }));
  return id;
}

/** Read again each time: another process of this installation may have found it. */
export function readSuccessor(config: Place): Successor | null {
  return read(successorFile(config)) as Successor | null;
}

export async function saveSuccessor(config: Place, { hostname, at }: Successor): Promise<void> {
  await replaceFileDurably(successorFile(config), JSON.stringify({ hostname, at }));
}

export async function removeSuccessor(config: Place): Promise<void> {
  await rm(successorFile(config), { force: true });
}

export function takenOverText({ hostname, at }: Successor): string {
  return (
    `This installation was taken over by ${hostname} at ${at.slice(0, 19)}Z, so it has stopped here. If it shall run ` +
    'here and not there, call `platform backup take-over` and start the service.'
  );
}

function read(file: string): unknown {
  if (!existsSync(file)) return null;
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}
