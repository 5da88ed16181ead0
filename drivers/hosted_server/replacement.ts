// Replacement of data, by a restore or an upgrade. The old data are set aside until the server responds with the new
// ones, and put back if it does not. After a crash at any point, the same call continues, or `restorePreviousData`
// reverts it. The new data are on a new disk, which replaces the old one (server_disk.ts); a server without a disk gets
// one. On a host without disks, and for the first data, both are in the same directory:
//   data.next    whole data that wait      data.before  the old ones, aside
//   replacement.json  its key: exists from the completion of the new data to the end
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, rename } from 'node:fs/promises';
import path from 'node:path';
import { DriverError } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
import { toSentence } from '../../core/sentence';
import { dropOtherDisks, hasNextDisk, makeNextDisk, placeOfData, swapBackDisk, swapInNextDisk } from './server_disk';
import {
  removeServerTree,
  exists,
  readNote,
  removeNote,
  writeNote,
  type EngineContext,
  type ServerDirectory,
} from './server_directory';

const noteName = 'replacement';
const doneName = 'replaced';

/** `hadDisk`: the old data are on a disk. `undone`: they are being put back. */
interface ReplacementNote {
  key: string;
  hadDisk?: boolean;
  undone?: true;
}

/** A new disk of this size. */
export interface NextDisk {
  engine: EngineContext;
  bytes: number;
}

interface Replacement {
  /** A repeated call with the same key continues the replacement, or finds that it is done. */
  key: string;
  /** Disk of the new data; null: on that of the old ones. */
  disk: NextDisk | null;
  /** Writes the new data to a temporary directory. */
  fill(temporary: string): Promise<void>;
  stop(): Promise<void>;
  /** Starts the server with the new data, and verifies that it responds. */
  verify(): Promise<void>;
  /** Starts the server with the old data, after the new ones have failed. */
  rollBack(): Promise<void>;
}

/** @throws DriverError invalid where the server did not start with the new data: the old ones are in place again */
export async function replaceData(
  serverDirectory: ServerDirectory,
  replacement: Replacement,
  ctx: DriverContext,
): Promise<void> {
  const { key, stop, verify, rollBack } = replacement;
  // A call killed in its last steps may have left some of them.
  if (await isReplaced(serverDirectory, key)) return commitData(serverDirectory, key, ctx);
  await prepareData(serverDirectory, replacement, ctx);
  await stop();
  await swapIn(serverDirectory, ctx);
  try {
    await verify();
  } catch (error) {
    if (ctx.signal.aborted) throw error; // the next call continues
    await stop();
    await restorePreviousData(serverDirectory, ctx);
    await rollBack();
    const reason = error instanceof DriverError ? `${toSentence(error.message)} ` : '';
    throw Object.assign(
      new DriverError('invalid', `The server did not start with the new data. ${reason}The data from before are back.`),
      { cause: error },
    );
  }
  await commitData(serverDirectory, key, ctx);
}

/** Puts the old data back. The server is stopped. */
export async function restorePreviousData(serverDirectory: ServerDirectory, ctx: DriverContext): Promise<void> {
  const { path: home } = serverDirectory;
  const begun = await readNote<ReplacementNote>(serverDirectory, noteName);
  // Record this first: the old data in place must not be mistaken for the new ones.
  if (begun !== null) await writeNote(serverDirectory, noteName, { ...begun, undone: true });
  if (begun?.hadDisk !== undefined && !hasNextDisk(home)) await swapBackDisk(home, begun.hadDisk, ctx);
  if (await exists(beforeOf(serverDirectory))) {
    if (await exists(serverDirectory.data)) await rename(serverDirectory.data, temporaryIn(placeOfData(home)));
    await rename(beforeOf(serverDirectory), serverDirectory.data);
  }
  await removeNote(serverDirectory, noteName);
  await clearStaging(serverDirectory, ctx);
}

/** Whether a replacement was begun and is not completed. */
export async function isReplacing(serverDirectory: ServerDirectory): Promise<boolean> {
  const begun = await readNote<ReplacementNote>(serverDirectory, noteName);
  return begun !== null && !(await isReplaced(serverDirectory, begun.key));
}

/** Owner of the data, also while they are set aside. */
export async function dataOwner(serverDirectory: ServerDirectory): Promise<{ uid: number; gid: number }> {
  const { uid, gid } = await lstat(
    (await exists(serverDirectory.data)) ? serverDirectory.data : beforeOf(serverDirectory),
  );
  return { uid, gid };
}

// Unless an interrupted call for the same key has prepared them.
async function prepareData(
  serverDirectory: ServerDirectory,
  { key, disk, fill, stop }: Replacement,
  ctx: DriverContext,
): Promise<void> {
  const { path: home } = serverDirectory;
  const begun = await readNote<ReplacementNote>(serverDirectory, noteName);
  if (begun?.key === key && begun.undone !== true) return;
  if (begun !== null && !(await isReplaced(serverDirectory, begun.key))) {
    await stop();
    await restorePreviousData(serverDirectory, ctx);
  }
  if (hasNextDisk(home)) await stop(); // a killed call may have left a process there
  await clearStaging(serverDirectory, ctx);
  const nextDisk = disk === null ? null : await makeNextDisk(disk.engine, home, disk.bytes, ctx);
  const temporary = nextDisk === null ? temporaryIn(placeOfData(home)) : path.join(nextDisk, 'data');
  await mkdir(temporary, { mode: 0o700 });
  try {
    await fill(temporary);
  } catch (error) {
    // Half of the new data would take room until the next replacement. A killed call leaves them to that one.
    if (!ctx.signal.aborted) await clearStaging(serverDirectory, ctx).catch(() => undefined);
    throw error;
  }
  if (nextDisk === null) await rename(temporary, nextOf(serverDirectory));
  const note: ReplacementNote = nextDisk === null ? { key } : { key, hadDisk: placeOfData(home) !== home };
  await writeNote(serverDirectory, noteName, note);
}

async function swapIn(serverDirectory: ServerDirectory, ctx: DriverContext): Promise<void> {
  if (hasNextDisk(serverDirectory.path)) return swapInNextDisk(serverDirectory.path, ctx);
  if (!(await exists(nextOf(serverDirectory)))) return;
  if (await exists(serverDirectory.data)) await rename(serverDirectory.data, beforeOf(serverDirectory));
  await rename(nextOf(serverDirectory), serverDirectory.data);
}

// Whether the last completed replacement has this key.
async function isReplaced(serverDirectory: ServerDirectory, key: string): Promise<boolean> {
  return (await readNote<ReplacementNote>(serverDirectory, doneName))?.key === key;
}

async function commitData(serverDirectory: ServerDirectory, key: string, ctx: DriverContext): Promise<void> {
  await writeNote(serverDirectory, doneName, { key });
  await removeNote(serverDirectory, noteName);
  await clearStaging(serverDirectory, ctx);
}

// Without the note, data set aside belong to a completed replacement: also those without a disk, if there is a disk.
async function clearStaging({ path: home }: ServerDirectory, ctx: DriverContext): Promise<void> {
  const place = placeOfData(home);
  await dropOtherDisks(home, ctx);
  if (place !== home) await removeServerTree(path.join(home, 'data'), ctx);
  for (const directory of new Set([home, place])) {
    for (const entry of await readdir(directory)) {
      if (/^(next|data\.(next|before)|\.next-[0-9a-f]{12})$/.test(entry))
        await removeServerTree(path.join(directory, entry), ctx);
    }
  }
}

const temporaryIn = (place: string) => path.join(place, `.next-${randomBytes(6).toString('hex')}`);
const nextOf = (serverDirectory: ServerDirectory) => `${serverDirectory.data}.next`;
const beforeOf = (serverDirectory: ServerDirectory) => `${serverDirectory.data}.before`;
