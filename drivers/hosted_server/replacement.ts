// Data that take the place of others: by a restore, by an upgrade. The old ones stay aside until the server with the
// new ones answers, and come back when it does not. Killed at any point, the same call goes on, or
// `restorePreviousData` ends it.
//   data.next    whole data that wait      data.before  the old ones, aside
//   replacement.json  says for whom: there from the moment data.next is whole until the end
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, rename } from 'node:fs/promises';
import path from 'node:path';
import { DriverError } from '../driver';
import type { DriverContext } from '../driver';
import { removeServerTree, exists, readNote, removeNote, writeNote, type ServerDirectory } from './server_directory';

const noteName = 'replacement';
const doneName = 'replaced';

export interface Replacement {
  /** Called again with the same one, a replacement goes on or finds that it is done. */
  key: string;
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
  { key, fill, stop, verify, rollBack }: Replacement,
  ctx: DriverContext,
): Promise<void> {
  // Killed in its last steps, it has left some of them.
  if (await isReplaced(serverDirectory, key)) return commitData(serverDirectory, key, ctx);
  await prepareData(serverDirectory, key, fill, stop, ctx);
  await stop();
  await swapIn(serverDirectory);
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
  if (await exists(beforeOf(serverDirectory))) {
    if (await exists(serverDirectory.data))
      await rename(
        serverDirectory.data,
        path.join(placeOf(serverDirectory), `.next-${randomBytes(6).toString('hex')}`),
      );
    await rename(beforeOf(serverDirectory), serverDirectory.data);
  }
  await removeNote(serverDirectory, noteName);
  await clearStaging(serverDirectory, ctx);
}

/** A replacement was begun and has not come to its end. */
export async function isReplacing(serverDirectory: ServerDirectory): Promise<boolean> {
  const begun = await readNote<{ key: string }>(serverDirectory, noteName);
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
  key: string,
  fill: Replacement['fill'],
  stop: Replacement['stop'],
  ctx: DriverContext,
): Promise<void> {
  const begun = await readNote<{ key: string }>(serverDirectory, noteName);
  if (begun?.key === key) return;
  if (begun !== null && !(await isReplaced(serverDirectory, begun.key))) {
    await stop();
    await restorePreviousData(serverDirectory, ctx);
  }
  await clearStaging(serverDirectory, ctx);
  const temporary = path.join(placeOf(serverDirectory), `.next-${randomBytes(6).toString('hex')}`);
  await mkdir(temporary, { mode: 0o700 });
  await fill(temporary);
  await rename(temporary, nextOf(serverDirectory));
  await writeNote(serverDirectory, noteName, { key });
}

async function swapIn(serverDirectory: ServerDirectory): Promise<void> {
  if (!(await exists(nextOf(serverDirectory)))) return;
  if (await exists(serverDirectory.data)) await rename(serverDirectory.data, beforeOf(serverDirectory));
  await rename(nextOf(serverDirectory), serverDirectory.data);
}

// It has come to its good end, and none since.
async function isReplaced(serverDirectory: ServerDirectory, key: string): Promise<boolean> {
  return (await readNote<{ key: string }>(serverDirectory, doneName))?.key === key;
}

async function commitData(serverDirectory: ServerDirectory, key: string, ctx: DriverContext): Promise<void> {
  await writeNote(serverDirectory, doneName, { key });
  await removeNote(serverDirectory, noteName);
  await clearStaging(serverDirectory, ctx);
}

// Without the note data.before is of a replacement that has ended.
async function clearStaging(serverDirectory: ServerDirectory, ctx: DriverContext): Promise<void> {
  for (const entry of await readdir(placeOf(serverDirectory))) {
    if (/^(data\.(next|before)|\.next-[0-9a-f]{12})$/.test(entry))
      await removeServerTree(path.join(placeOf(serverDirectory), entry), ctx);
  }
}

// Beside the data: on their disk, where they have one.
const placeOf = (serverDirectory: ServerDirectory) => path.dirname(serverDirectory.data);
const nextOf = (serverDirectory: ServerDirectory) => `${serverDirectory.data}.next`;
const beforeOf = (serverDirectory: ServerDirectory) => `${serverDirectory.data}.before`;
