// Directory layout of volumes: <directory>/<id>/ contains the ownership mark and the user's files. A volume is made
// under a temporary name and renamed when complete, and renamed before it is deleted, so a volume under its real name
// is complete.
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readFile, readdir, rename } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull, syncDirectory, replaceFileDurably } from '../../core/files';
import { run } from '../../core/process/command';
import { DriverError, checkpoint } from '../../core/driver';
import type { DriverContext, Owned } from '../../core/driver';
import { mountsUnder } from './mounts';

/** `sizeUnitBytes`: bytes per GB of `size_gb`, 2^30 except in tests. */
export interface VolumeRoot {
  directory: string;
  driver: string;
  sizeUnitBytes: number;
}

/** `size_gb` is set by drivers whose volumes have no inherent size. */
interface Mark {
  owner_id: string;
  driver: string;
  size_gb?: number;
}

type FoundVolume =
  | { state: 'absent' }
  | { state: 'foreign'; detail: string }
  | { state: 'ours'; home: string; mark: Mark };

const markName = '.svc-owner';

// Other users may traverse to a volume whose name they know, but not list the directory.
const passable = 0o711;

/** The directory of a volume. Throws DriverError `invalid` for an invalid id. */
function volumeDirectory(place: VolumeRoot, id: string): string {
  if (!/^[a-z][a-z0-9_]{0,63}$/.test(id))
    throw new DriverError('invalid', 'The id of the volume cannot be the name of a directory.');
  return path.join(place.directory, id);
}

/** The volume of this name, if it exists. Read-only. */
export async function findVolume(place: VolumeRoot, id: string): Promise<FoundVolume> {
  const home = volumeDirectory(place, id);
  const stats = await lstat(home).catch(absentIsNull);
  if (stats === null) return { state: 'absent' };
  const mark = stats.isDirectory() ? await readMark(home) : null;
  if (mark?.owner_id === id && mark.driver === place.driver) return { state: 'ours', home, mark };
  return { state: 'foreign', detail: 'Something else has the name of this volume.' };
}

/** @throws DriverError conflict where its files are gone, or the name is taken */
export async function requireVolume(place: VolumeRoot, id: string): Promise<Extract<FoundVolume, { state: 'ours' }>> {
  const found = await findVolume(place, id);
  if (found.state === 'ours') return found;
  throw found.state === 'foreign' ? nameTaken() : filesMissing();
}

/**
 * Creates the volume's directory: `fill` works under a temporary name, the mark is written last, and a rename completes
 * it. Throws DriverError `conflict` when the name was taken in the meantime.
 */
export async function createVolume(
  place: VolumeRoot,
  mark: Mark,
  fill: (home: string) => Promise<void>,
): Promise<void> {
  await mkdir(place.directory, { recursive: true, mode: passable });
  const temporary = temporaryName(place, 'new', mark.owner_id);
  await mkdir(temporary, { mode: passable });
  await fill(temporary);
  await writeMark(temporary, mark);
  const home = volumeDirectory(place, mark.owner_id);
  // rename() would replace an empty foreign directory.
  if ((await lstat(home).catch(absentIsNull)) !== null) throw nameTaken();
  await rename(temporary, home);
  await syncDirectory(place.directory);
}

/** Replaces the mark of a volume atomically. */
export async function writeMark(home: string, mark: Mark): Promise<void> {
  await replaceFileDurably(path.join(home, markName), JSON.stringify(mark));
}

/** Removes an owned volume: it is renamed first, so that no partially deleted volume has its name. */
export async function removeVolume(place: VolumeRoot, id: string, ctx: DriverContext): Promise<void> {
  const home = volumeDirectory(place, id);
  await requireNoMounts(home);
  await rename(home, temporaryName(place, 'trash', id));
  await removeLeftovers(place, id, ctx);
}

/** Deletes temporary directories of interrupted calls for this volume. */
export async function removeLeftovers(place: VolumeRoot, id: string, ctx: DriverContext): Promise<void> {
  for (const entry of await entriesOf(place)) {
    if (ownedLeftover(place, entry)?.owner_id !== id) continue;
    checkpoint(ctx);
    await removeUnmountedTree(path.join(place.directory, entry), ctx);
  }
}

/** Deletes a tree. Throws DriverError `transient` while something is mounted in it. */
export async function removeUnmountedTree(tree: string, ctx: DriverContext): Promise<void> {
  await requireNoMounts(tree);
  // rm walks by directory descriptors: it follows no concurrently inserted links, and supports paths of any length.
  await run('rm', ['-rf', '--', tree], ctx);
}

/** All volumes of this driver, including remains. */
export async function* listOwned(place: VolumeRoot, ctx: DriverContext): AsyncIterable<Owned> {
  for (const entry of await entriesOf(place)) {
    checkpoint(ctx);
    const owned = ownedLeftover(place, entry) ?? (await ownedVolume(place, entry));
    if (owned !== null) yield owned;
  }
}

export function nameTaken(): DriverError {
  return new DriverError('conflict', 'Something else has the name of this volume. The platform does not touch it.');
}

/** A missing volume is not replaced by an empty one: its disk may just not be mounted. */
export function filesMissing(): DriverError {
  return new DriverError(
    'conflict',
    'The files of this volume are gone from the host. Bring them back, or delete the volume.',
  );
}

/** Throws DriverError `invalid`: volumes only grow. */
export function requireGrowth(presentGb: number, desiredGb: number): void {
  if (desiredGb < presentGb)
    throw new DriverError('invalid', `A volume of ${presentGb} GB cannot shrink to ${desiredGb} GB.`);
}

async function readMark(home: string): Promise<Mark | null> {
  try {
    const mark: unknown = JSON.parse(await readFile(path.join(home, markName), 'utf8'));
    return typeof mark === 'object' ? (mark as Mark | null) : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    return absentIsNull(error as NodeJS.ErrnoException);
  }
}

async function ownedVolume(place: VolumeRoot, entry: string): Promise<Owned | null> {
  if (entry.startsWith('.')) return null;
  const mark = await readMark(path.join(place.directory, entry));
  if (mark?.owner_id !== entry || mark.driver !== place.driver) return null;
  return { ref: { driver: place.driver, name: entry }, owner_id: entry };
}

function ownedLeftover(place: VolumeRoot, entry: string): Owned | null {
  const parts = /^\.([a-z_]+)-(?:new|trash)-([a-z0-9_]+)-[0-9a-f]{12}$/.exec(entry);
  if (parts?.[1] !== place.driver || parts[2] === undefined) return null;
  return { ref: { driver: place.driver, name: entry }, owner_id: parts[2] };
}

function temporaryName(place: VolumeRoot, purpose: 'new' | 'trash', id: string): string {
  return path.join(place.directory, `.${place.driver}-${purpose}-${id}-${randomBytes(6).toString('hex')}`);
}

async function entriesOf(place: VolumeRoot): Promise<string[]> {
  return (await readdir(place.directory).catch(absentIsNull)) ?? [];
}

async function requireNoMounts(tree: string): Promise<void> {
  if ((await mountsUnder(tree)).length > 0)
    throw new DriverError('transient', 'Something is still mounted inside the volume.', 5_000);
}
