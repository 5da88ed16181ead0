// Data that take the place of others: by a restore, by an upgrade. The old ones stay aside until the server with the
// new ones answers, and come back when it does not. Killed at any point, the same call goes on, or
// `restorePreviousData` ends it. The new data are on a disk of their own, which takes the place of that of the old ones
// (server_disk.ts); a server that had none gets one. Where the host has no disks, and for the first data, they are
// beside each other:
//   data.next    whole data that wait      data.before  the old ones, aside
//   replacement.json  says for whom: there from the moment the new data are whole until the end
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, rename } from 'node:fs/promises';
import path from 'node:path';
import { DriverError } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
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

/** `hadDisk`: the old data are on one. `undone`: they are coming back. */
interface ReplacementNote {
  key: string;
  hadDisk?: boolean;
  undone?: true;
}

/** A disk of the host of this size. */
export interface NextDisk {
  engine: EngineContext;
  bytes: number;
}

export interface Replacement {
  /** Called again with the same one, a replacement goes on or finds that it is done. */
  key: string;
  /** Of the new data; null: they are on that of the old ones. */
  disk: NextDisk | null;
  /** Makes the new data in a directory of its own. */
  fill(temporary: string): Promise<void>;
  stop(): Promise<void>;
  /** Starts the server with the new data, and sees that it answers. */
  verify(): Promise<void>;
  /** Starts the server with the old data, when the new ones were no good. */
  rollBack(): Promise<void>;
}

/** @throws DriverError invalid where the server did not start with the new data: the old ones are back */
export async function replaceData(
  serverDirectory: ServerDirectory,
  replacement: Replacement,
  ctx: DriverContext,
): Promise<void> {
  const { key, stop, verify, rollBack } = replacement;
  // Killed in its last steps, it has left some of them.
  if (await isReplaced(serverDirectory, key)) return commitData(serverDirectory, key, ctx);
  await prepareData(serverDirectory, replacement, ctx);
  await stop();
  await swapIn(serverDirectory, ctx);
  try {
    await verify();
  } catch (error) {
    if (ctx.signal.aborted) throw error; // the next call goes on
    await stop();
    await restorePreviousData(serverDirectory, ctx);
    await rollBack();
    throw Object.assign(
      new DriverError('invalid', 'The server did not start with the new data. The data from before are back.'),
      { cause: error },
    );
  }
  await commitData(serverDirectory, key, ctx);
}

/** The old data come back. The server is stopped. */
export async function restorePreviousData(serverDirectory: ServerDirectory, ctx: DriverContext): Promise<void> {
  const { path: home } = serverDirectory;
  const begun = await readNote<ReplacementNote>(serverDirectory, noteName);
  // First: who finds the old data in place must not take them for the new ones.
  if (begun !== null) await writeNote(serverDirectory, noteName, { ...begun, undone: true });
  if (begun?.hadDisk !== undefined && !hasNextDisk(home)) await swapBackDisk(home, begun.hadDisk, ctx);
  if (await exists(beforeOf(serverDirectory))) {
    if (await exists(serverDirectory.data)) await rename(serverDirectory.data, temporaryIn(placeOfData(home)));
    await rename(beforeOf(serverDirectory), serverDirectory.data);
  }
  await removeNote(serverDirectory, noteName);
  await clearStaging(serverDirectory, ctx);
}

/** A replacement was begun and has not come to its end. */
export async function isReplacing(serverDirectory: ServerDirectory): Promise<boolean> {
  const begun = await readNote<ReplacementNote>(serverDirectory, noteName);
  return begun !== null && !(await isReplaced(serverDirectory, begun.key));
}

/** Whose data they are, also in the moment when they are aside. */
export async function dataOwner(serverDirectory: ServerDirectory): Promise<{ uid: number; gid: number }> {
  const { uid, gid } = await lstat(
    (await exists(serverDirectory.data)) ? serverDirectory.data : beforeOf(serverDirectory),
  );
  return { uid, gid };
}

// Unless an interrupted call for the same key has made them.
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
  if (hasNextDisk(home)) await stop(); // a killed call has left what works there
  await clearStaging(serverDirectory, ctx);
  const nextDisk = disk === null ? null : await makeNextDisk(disk.engine, home, disk.bytes, ctx);
  const temporary = nextDisk === null ? temporaryIn(placeOfData(home)) : path.join(nextDisk, 'data');
  await mkdir(temporary, { mode: 0o700 });
  await fill(temporary);
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

// It has come to its good end, and none since.
async function isReplaced(serverDirectory: ServerDirectory, key: string): Promise<boolean> {
  return (await readNote<ReplacementNote>(serverDirectory, doneName))?.key === key;
}

async function commitData(serverDirectory: ServerDirectory, key: string, ctx: DriverContext): Promise<void> {
  await writeNote(serverDirectory, doneName, { key });
  await removeNote(serverDirectory, noteName);
  await clearStaging(serverDirectory, ctx);
}

// Without the note, what is aside is of a replacement that has ended: data without a disk, where there is one, too.
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
