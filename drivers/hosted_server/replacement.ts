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
import { runSteps, type DeclaredStep } from '../../core/steps';
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

interface Work extends Replacement {
  serverDirectory: ServerDirectory;
}

interface ReplacementStep extends DeclaredStep<Work, DriverContext> {
  run(work: Work, ctx: DriverContext): Promise<void>;
}

/** The way of new data into a server directory. After a kill, the next call finds by the files which step is next. */
export const replacementSteps: readonly ReplacementStep[] = [
  {
    // Another replacement that did not come to its end is undone, and what was left lying is removed.
    name: 'clear',
    isDone: isFilled,
    run: clearOtherReplacement,
  },
  {
    // The new data are written beside the old ones, which stay in service. The note says that they are complete.
    name: 'fill',
    isDone: isFilled,
    run: fillNext,
  },
  {
    name: 'stop',
    isDone: isCommitted,
    run: ({ stop }) => stop(),
  },
  {
    // The old data are set aside.
    name: 'swap',
    isDone: isSwapped,
    run: swapIn,
  },
  {
    // The server responds with the new data; else the old ones are put back, and the replacement has failed.
    name: 'verify',
    isDone: isCommitted,
    run: verifyOrRollBack,
  },
  {
    // The replacement is noted as done, and the old data are removed. A killed call may have left some of them.
    name: 'commit',
    isDone: () => false,
    run: commitData,
  },
];

/** @throws DriverError invalid where the server did not start with the new data: the old ones are in place again */
export async function replaceData(
  serverDirectory: ServerDirectory,
  replacement: Replacement,
  ctx: DriverContext,
): Promise<void> {
  const work = { ...replacement, serverDirectory };
  await runSteps(replacementSteps, work, ctx, async (step): Promise<'done'> => {
    await step.run(work, ctx);
    return 'done';
  });
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

// By an interrupted call for the same key.
async function isFilled({ serverDirectory, key }: Work): Promise<boolean> {
  const begun = await readNote<ReplacementNote>(serverDirectory, noteName);
  return (begun?.key === key && begun.undone !== true) || isReplaced(serverDirectory, key);
}

async function isSwapped(work: Work): Promise<boolean> {
  const { serverDirectory } = work;
  const waits = hasNextDisk(serverDirectory.path) || (await exists(nextOf(serverDirectory)));
  return !waits || isCommitted(work);
}

function isCommitted({ serverDirectory, key }: Work): Promise<boolean> {
  return isReplaced(serverDirectory, key);
}

// Whether the last completed replacement has this key.
async function isReplaced(serverDirectory: ServerDirectory, key: string): Promise<boolean> {
  return (await readNote<ReplacementNote>(serverDirectory, doneName))?.key === key;
}

async function clearOtherReplacement({ serverDirectory, stop }: Work, ctx: DriverContext): Promise<void> {
  if (await isReplacing(serverDirectory)) {
    await stop();
    await restorePreviousData(serverDirectory, ctx);
  }
  if (hasNextDisk(serverDirectory.path)) await stop(); // a killed call may have left a process there
  await clearStaging(serverDirectory, ctx);
}

async function fillNext({ serverDirectory, key, disk, fill }: Work, ctx: DriverContext): Promise<void> {
  const { path: home } = serverDirectory;
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

async function swapIn({ serverDirectory }: Work, ctx: DriverContext): Promise<void> {
  if (hasNextDisk(serverDirectory.path)) return swapInNextDisk(serverDirectory.path, ctx);
  if (await exists(serverDirectory.data)) await rename(serverDirectory.data, beforeOf(serverDirectory));
  await rename(nextOf(serverDirectory), serverDirectory.data);
}

async function verifyOrRollBack(work: Work, ctx: DriverContext): Promise<void> {
  try {
    await work.verify();
  } catch (error) {
    if (ctx.signal.aborted) throw error; // the next call continues
    await work.stop();
    await restorePreviousData(work.serverDirectory, ctx);
    await work.rollBack();
    const reason = error instanceof DriverError ? ` ${toSentence(error.message)}` : '';
    const message = `The server did not start with the new data.${reason}`;
    throw Object.assign(new DriverError('invalid', message), { cause: error });
  }
}

async function commitData({ serverDirectory, key }: Work, ctx: DriverContext): Promise<void> {
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
