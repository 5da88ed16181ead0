// Who backs up to the repository: one installation. A restore takes it over, and the machine of before finds the mark
// and stops, since two of the same would run schedules, send mail and order certificates twice.
import type { Config } from '../../core/config';
import { CommandError } from '../command_error';
import {
  ownerFile,
  readOwnId,
  removeSuccessor,
  saveNewOwnId,
  saveSuccessor,
  type Successor,
} from '../platform/installation_owner';
import { openWalRepository, type OwnerMark, type WalRepository } from './wal_repository';

/** A machine that runs pushes more often. */
const SILENT_MS = 2 * 60_000;

/** The one that owns the repository. Of two that took it over at once, both find the same. */
export function ownerAmong(marks: readonly OwnerMark[]): OwnerMark | null {
  const [owner] = [...marks].sort((a, b) => b.generation - a.generation || (a.id < b.id ? 1 : -1));
  return owner ?? null;
}

/**
 * @returns who has taken over from this installation; null: nobody
 * @throws CommandError where the repository is that of another installation
 */
export async function checkOwner(config: Config, repository: WalRepository): Promise<Successor | null> {
  const owner = ownerAmong((await repository.read()).owners);
  const own = readOwnId(config);
  if (owner === null || own === owner.id) return null;
  if (own === null)
    throw new CommandError(
      `the repository is that of an installation on ${owner.hostname}: choose another RESTIC_REPOSITORY, or call ` +
        '`platform backup take-over` if it is this one and no other machine runs it',
    );
  await saveSuccessor(config, owner);
  return owner;
}

/**
 * As checkOwner, but makes a repository that is not there: the first installation to come owns it. Called by a backup,
 * of which one is made at a time: two runs of `restic init` at once leave a repository that none can read.
 */
export async function claimRepository(config: Config, repository: WalRepository): Promise<Successor | null> {
  await repository.ensure();
  if (ownerAmong((await repository.read()).owners) !== null) return checkOwner(config, repository);
  const file = await ownFile(config);
  await repository.mark(file, { id: readOwnId(config) as string, generation: 1 });
  return null;
}

async function ownFile(config: Config): Promise<string> {
  if (readOwnId(config) === null) await saveNewOwnId(config);
  return ownerFile(config);
}

/** Of no installation: whoever restores the repository owns it. */
const HANDED_OVER = 'handed-over';

/** From now on no installation owns the repository, and the next one restores it without `--even-if-it-runs`. */
export async function handOver(config: Config): Promise<void> {
  const repository = openWalRepository(config);
  const generation = (ownerAmong((await repository.read()).owners)?.generation ?? 0) + 1;
  await repository.mark(ownerFile(config), { id: HANDED_OVER, generation });
}

/** Who seems to run the installation: it has pushed a moment ago. Null: nobody. @param now ms since the epoch */
export async function findRunning(
  repository: WalRepository,
  now: number,
): Promise<(OwnerMark & { agoMs: number }) | null> {
  const { log, owners } = await repository.read();
  const owner = ownerAmong(owners);
  if (owner === null || owner.id === HANDED_OVER) return null;
  const agoMs = Math.max(0, now - Math.max(0, ...log.map(({ until }) => Date.parse(until))));
  return agoMs <= SILENT_MS ? { ...owner, agoMs } : null;
}

/** From now on this installation owns the repository. */
export async function takeOver(config: Config): Promise<void> {
  const repository = openWalRepository(config);
  await repository.ensure();
  const { owners } = await repository.read();
  const generation = (ownerAmong(owners)?.generation ?? 0) + 1;
  await repository.unlock();
  // A new name: that of before may have been copied with the directory.
  const id = await saveNewOwnId(config);
  await repository.mark(ownerFile(config), { id, generation });
  await removeSuccessor(config);
}
