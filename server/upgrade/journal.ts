// What an upgrade has come to, in a file that outlives every step of it. Releases read what other releases wrote:
// fields are added, never changed.
import { link, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { replaceFileDurably, syncDirectory } from '../../core/files';
import type { Installation } from './installation';

export interface Journal {
  kind: 'upgrade' | 'rollback';
  from: string;
  /** Null until the archive has been read. */
  to: string | null;
  /** Path of the archive; null: RELEASES_URL has it. */
  file: string | null;
  /** SHA-256 of the archive, once it is known to be the right one. */
  sha256: string | null;
  /** The step that has begun. */
  step: string;
  direction: 'forward' | 'back';
  /** Why it goes back. */
  reason: string | null;
  notes: string[];
  /** The parts that were healthy before. */
  well: string[];
  /** Whether the directory of the release is of this upgrade. */
  unpacked: boolean;
  /** Directory of the backup of the control database. */
  point: string | null;
  /** Of a rollback that restores the backup: when that was made. */
  restores: string | null;
  started_at: string;
  ended_at: string | null;
  outcome: 'running' | 'done' | 'undone' | 'failed';
  /** Who began it at the terminal. */
  by?: string;
}

type Name = 'state' | 'last';

const fileOf = ({ staging }: Installation, name: Name): string => path.join(staging, `${name}.json`);

export function newJournal(
  values: Pick<Journal, 'kind' | 'from' | 'to' | 'file' | 'restores' | 'step' | 'by'>,
): Journal {
  return {
    ...values,
    ...{ sha256: null, direction: 'forward', reason: null, notes: [], well: [], unpacked: false, point: null },
    ...{ started_at: new Date().toISOString(), ended_at: null, outcome: 'running' },
  };
}

/** @param name `state` of the upgrade that has not ended, `last` of the one that ended last */
export function readJournal(installation: Installation, name: Name): Journal | null {
  try {
    return JSON.parse(readFileSync(fileOf(installation, name), 'utf8')) as Journal;
  } catch {
    return null;
  }
}

/** That of the upgrade or rollback that is under way, else of the last one. */
export function newestJournal(installation: Installation): Journal | null {
  return readJournal(installation, 'state') ?? readJournal(installation, 'last');
}

/** @returns false where another upgrade has begun and not ended */
export async function beginJournal(installation: Installation, journal: Journal): Promise<boolean> {
  await mkdir(installation.staging, { recursive: true, mode: 0o700 });
  const draft = fileOf(installation, 'state') + `.${process.pid}`;
  await writeFile(draft, JSON.stringify(journal, null, 2), { mode: 0o600, flush: true });
  try {
    await link(draft, fileOf(installation, 'state'));
    await syncDirectory(installation.staging);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

export function saveJournal(installation: Installation, journal: Journal): Promise<void> {
  return replaceFileDurably(fileOf(installation, 'state'), JSON.stringify(journal, null, 2));
}

/** It has ended: the next one may begin. */
export async function endJournal(installation: Installation, journal: Journal): Promise<void> {
  await saveJournal(installation, journal);
  await rename(fileOf(installation, 'state'), fileOf(installation, 'last'));
  await syncDirectory(installation.staging);
}

/** One that could not be started. */
export async function discardJournal(installation: Installation): Promise<void> {
  await rm(fileOf(installation, 'state'), { force: true });
}
