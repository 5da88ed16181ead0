// A volume as a plain directory. Works everywhere; the limit is soft: usage is measured and shown, but writes are not
// stopped.
import { lstat, mkdir, readFile, rename, rm, rmdir, statfs } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull, replaceFile, syncDirectory } from '../../core/files';
import { CommandFailed, run } from '../../core/process/command';
import { DriverError, asDriverErrors, checkpoint } from '../../core/driver';
import type { Desired, DriverContext, Ensured, Fingerprint, Observation } from '../../core/driver';
import type {
  FilesRead,
  FilesReplacement,
  FilesToRead,
  HostVolumeDriver,
  HostVolumeObserved,
  HostVolumeSpec,
} from '../volume';
import { VolumeInUse } from './ext4';
import {
  removeLeftovers,
  removeVolume,
  findVolume,
  listOwned,
  filesMissing,
  requireGrowth,
  createVolume,
  nameTaken,
  removeUnmountedTree,
  requireVolume,
  writeMark,
} from './layout';
import type { VolumeRoot } from './layout';
import { isDirectoryMountedElsewhere } from './mounts';
import { forgetReplacement, noteReplacement, readReplacement, requireFreeBytes } from './replacement';

type Volume = Desired<HostVolumeSpec>;

// An observation of a volume may take 5 s; one second remains for its other parts.
const measureWithinMs = 4_000;

/** The driver on `directory`; `sizeUnitBytes`: bytes per GB. */
export function directoryVolumes(options: { directory: string; sizeUnitBytes: number }): HostVolumeDriver {
  const place: VolumeRoot = { ...options, driver: 'directory' };
  return {
    name: place.driver,
    enforcement: 'soft',
    fingerprint: () => fingerprint(place),
    observe: (r, ctx) => asDriverErrors(() => observe(place, r, ctx)),
    ensure: (r, _obs, ctx) => asDriverErrors(() => ensure(place, r, ctx)),
    remove: (r, _obs, ctx) => asDriverErrors(() => remove(place, r, ctx)),
    list: (ctx) => listOwned(place, ctx),
    files: {
      read: (r, read, ctx) => asDriverErrors(() => readFiles(place, r, read, ctx)),
      replace: (r, replacement, ctx) => asDriverErrors(() => replaceFiles(place, r, replacement, ctx)),
      discardReplacement: (r, ctx) => asDriverErrors(() => discardReplacement(place, r, ctx)),
    },
  };
}

async function fingerprint(place: VolumeRoot): Promise<Fingerprint> {
  try {
    await mkdir(place.directory, { recursive: true, mode: 0o711 });
    const disk = await statfs(place.directory);
    return {
      healthy: true,
      reason: null,
      facts: { enforcement: 'soft', free_bytes: disk.bavail * disk.bsize, total_bytes: disk.blocks * disk.bsize },
    };
  } catch (error) {
    return {
      healthy: false,
      reason: `The volume directory cannot be used (${(error as NodeJS.ErrnoException).code}).`,
      facts: {},
    };
  }
}

async function observe(place: VolumeRoot, r: Volume, ctx: DriverContext): Promise<Observation<HostVolumeObserved>> {
  checkpoint(ctx);
  const found = await findVolume(place, r.id);
  if (found.state !== 'ours') return found;
  const size = found.mark.size_gb ?? 0;
  const data = dataOf(found.home);
  const whole = (await lstat(data).catch(absentIsNull))?.isDirectory() ?? false;
  const used = whole ? await usedBytes(data, ctx) : 0;
  const observed: HostVolumeObserved = {
    size_gb: size,
    used_bytes: used,
    over_quota: (used ?? 0) > size * place.sizeUnitBytes,
    enforcement: 'soft',
    path: data,
  };
  return { state: 'present', upToDate: whole && size === r.spec.size_gb, observed, diff: difference(whole, size, r) };
}

async function ensure(place: VolumeRoot, r: Volume, ctx: DriverContext): Promise<Ensured> {
  checkpoint(ctx);
  const found = await findVolume(place, r.id);
  if (found.state === 'foreign') throw nameTaken();
  if (found.state === 'absent') await create(place, r, ctx);
  else await repair(found.home, found.mark.size_gb ?? 0, r);
  return { ref: { driver: place.driver, name: r.id } };
}

async function remove(place: VolumeRoot, r: Volume, ctx: DriverContext): Promise<void> {
  checkpoint(ctx);
  const found = await findVolume(place, r.id);
  if (found.state === 'ours') return removeVolume(place, r.id, ctx);
  return removeLeftovers(place, r.id, ctx);
}

async function create(place: VolumeRoot, r: Volume, ctx: DriverContext): Promise<void> {
  if (r.ref !== undefined) throw filesMissing();
  await removeLeftovers(place, r.id, ctx);
  await createVolume(place, { owner_id: r.id, driver: place.driver, size_gb: r.spec.size_gb }, makeData);
}

async function repair(home: string, presentGb: number, r: Volume): Promise<void> {
  requireGrowth(presentGb, r.spec.size_gb);
  if (!(await exists(dataOf(home)))) await swapIn(home);
  await makeData(home);
  if (presentGb < r.spec.size_gb)
    await writeMark(home, { owner_id: r.id, driver: 'directory', size_gb: r.spec.size_gb });
}

async function makeData(home: string): Promise<void> {
  const stats = await lstat(dataOf(home)).catch(absentIsNull);
  if (stats === null) return mkdir(dataOf(home), { mode: 0o700 });
  if (!stats.isDirectory())
    throw new DriverError('conflict', 'Something else is where the files of this volume belong.');
}

// du counts the blocks of files, follows no links, counts hard links once and stays on one file system (POSIX du, -s -k
// -x). It is a separate process, so a tree of millions of files does not block this one.
async function usedBytes(data: string, ctx: DriverContext): Promise<number | null> {
  const within = AbortSignal.timeout(measureWithinMs);
  try {
    return kilobytes(
      await run('du', ['-skx', '--', data], { deadline: ctx.deadline, signal: AbortSignal.any([ctx.signal, within]) }),
    );
  } catch (error) {
    checkpoint(ctx);
    if (within.aborted) return null;
    // If a file disappears during the run, du exits with 1; its result is still valid.
    if (error instanceof CommandFailed) return kilobytes(error.stdout);
    throw error;
  }
}

function kilobytes(line: string): number | null {
  const count = parseInt(line, 10);
  return Number.isNaN(count) ? null : count * 1024;
}

async function readFiles<T>(
  place: VolumeRoot,
  r: Volume,
  read: (files: FilesToRead) => Promise<T>,
  ctx: DriverContext,
): Promise<{ result: T; how: FilesRead }> {
  checkpoint(ctx);
  const { home } = await requireVolume(place, r.id);
  const data = dataOf(home);
  if (!(await exists(data))) throw new DriverError('transient', 'The volume is not ready.');
  const wasUsed = await isDirectoryMountedElsewhere(data);
  const owners = await readFile(ownersOf(home), 'utf8').catch(absentIsNull);
  const result = await read({ path: data, owners });
  return { result, how: wasUsed || (await isDirectoryMountedElsewhere(data)) ? 'live' : 'unused' };
}

async function replaceFiles(
  place: VolumeRoot,
  r: Volume,
  { key, bytes, owners, fill }: FilesReplacement,
  ctx: DriverContext,
): Promise<void> {
  checkpoint(ctx);
  const found = await findVolume(place, r.id);
  if (found.state === 'foreign') throw nameTaken();
  // What was lost is made again.
  if (found.state === 'absent')
    await createVolume(place, { owner_id: r.id, driver: place.driver, size_gb: r.spec.size_gb }, makeData);
  const { home } = await requireVolume(place, r.id);
  if ((await readReplacement(home))?.key !== key) {
    await swapIn(home);
    await removeUnmountedTree(beforeOf(home), ctx);
    await removeUnmountedTree(nextOf(home), ctx);
    await requireFreeBytes(home, bytes, 'The restore');
    await mkdir(nextOf(home), { mode: 0o700 });
    await fill(nextOf(home));
    await run('sync', ['-f', nextOf(home)], ctx);
    await noteReplacement(home, { key, state: 'filled', owners });
  }
  if (await isDirectoryMountedElsewhere(dataOf(home))) throw new VolumeInUse();
  await swapIn(home);
  await removeUnmountedTree(beforeOf(home), ctx);
}

/** Two renames, of which a killed call may have made one: whoever comes next makes the other. */
async function swapIn(home: string): Promise<void> {
  const note = await readReplacement(home);
  if (note?.state !== 'filled') return;
  if (await exists(nextOf(home))) {
    if ((await exists(dataOf(home))) && !(await exists(beforeOf(home)))) await rename(dataOf(home), beforeOf(home));
    await rmdir(dataOf(home)).catch(absentIsNull);
    await rename(nextOf(home), dataOf(home));
    await syncDirectory(home);
  }
  if (note.owners === null) await rm(ownersOf(home), { force: true });
  else await replaceFile(ownersOf(home), note.owners);
  await noteReplacement(home, { ...note, state: 'done' });
}

async function discardReplacement(place: VolumeRoot, r: Volume, ctx: DriverContext): Promise<void> {
  const found = await findVolume(place, r.id);
  if (found.state !== 'ours') return;
  const { home } = found;
  // The present files are aside: there is no way back but forward.
  if ((await readReplacement(home))?.state === 'filled' && !(await exists(dataOf(home)))) return swapIn(home);
  if ((await readReplacement(home))?.state === 'filled') await forgetReplacement(home);
  await removeUnmountedTree(nextOf(home), ctx);
}

async function exists(file: string): Promise<boolean> {
  return (await lstat(file).catch(absentIsNull)) !== null;
}

function difference(whole: boolean, size: number, r: Volume): string | undefined {
  if (!whole) return 'The directory of the files is missing.';
  return size === r.spec.size_gb ? undefined : `size_gb is ${size} instead of ${r.spec.size_gb}.`;
}

function dataOf(home: string): string {
  return path.join(home, 'data');
}

const nextOf = (home: string): string => path.join(home, 'data.next');
const beforeOf = (home: string): string => path.join(home, 'data.before');
const ownersOf = (home: string): string => path.join(home, '.owners');
