// Data that take the place of others: by a restore, by an upgrade. The old ones stay aside until the server with the new
// ones answers, and come back when it does not. Killed at any point, the same call goes on, or `putBack` ends it.
//   data.next    whole data that wait      data.before  the old ones, aside
//   replacement.json  says for whom: there from the moment data.next is whole until the end
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, rename } from 'node:fs/promises';
import path from 'node:path';
import { DriverError } from '../driver';
import type { DriverContext } from '../driver';
import { erase, exists, readNote, removeNote, writeNote, type Home } from './home';

const noteName = 'replacement';
const doneName = 'replaced';

export interface Replacement {
  /** Called again with the same one, a replacement goes on or finds that it is done. */
  key: string;
  /** Makes the new data in a directory of its own. */
  fill(draft: string): Promise<void>;
  stop(): Promise<void>;
  /** Starts the server with the new data, and sees that it answers. */
  prove(): Promise<void>;
  /** Starts the server with the old data, when the new ones were no good. */
  goBack(): Promise<void>;
}

/** @throws DriverError invalid where the server did not start with the new data: the old ones are back */
export async function replaceData(
  home: Home,
  { key, fill, stop, prove, goBack }: Replacement,
  ctx: DriverContext,
): Promise<void> {
  // Killed in its last steps, it has left some of them.
  if (await isReplaced(home, key)) return keepData(home, key, ctx);
  await prepareData(home, key, fill, stop, ctx);
  await stop();
  await swapIn(home);
  try {
    await prove();
  } catch (error) {
    if (ctx.signal.aborted) throw error; // the next call goes on
    await stop();
    await putBack(home, ctx);
    await goBack();
    throw Object.assign(
      new DriverError('invalid', 'The server did not start with the new data. The data from before are back.'),
      { cause: error },
    );
  }
  await keepData(home, key, ctx);
}

/** The old data come back. The server is stopped. */
export async function putBack(home: Home, ctx: DriverContext): Promise<void> {
  if (await exists(beforeOf(home))) {
    if (await exists(home.data))
      await rename(home.data, path.join(home.path, `.next-${randomBytes(6).toString('hex')}`));
    await rename(beforeOf(home), home.data);
  }
  await removeNote(home, noteName);
  await clearAside(home, ctx);
}

/** A replacement was begun and has not come to its end. */
export async function isReplacing(home: Home): Promise<boolean> {
  const begun = await readNote<{ key: string }>(home, noteName);
  return begun !== null && !(await isReplaced(home, begun.key));
}

/** Whose data they are, also in the moment when they are aside. */
export async function dataOwner(home: Home): Promise<{ uid: number; gid: number }> {
  const { uid, gid } = await lstat((await exists(home.data)) ? home.data : beforeOf(home));
  return { uid, gid };
}

// Unless an interrupted call for the same key has made them.
async function prepareData(
  home: Home,
  key: string,
  fill: Replacement['fill'],
  stop: Replacement['stop'],
  ctx: DriverContext,
): Promise<void> {
  const begun = await readNote<{ key: string }>(home, noteName);
  if (begun?.key === key) return;
  if (begun !== null && !(await isReplaced(home, begun.key))) {
    await stop();
    await putBack(home, ctx);
  }
  await clearAside(home, ctx);
  const draft = path.join(home.path, `.next-${randomBytes(6).toString('hex')}`);
  await mkdir(draft, { mode: 0o700 });
  await fill(draft);
  await rename(draft, nextOf(home));
  await writeNote(home, noteName, { key });
}

async function swapIn(home: Home): Promise<void> {
  if (!(await exists(nextOf(home)))) return;
  if (await exists(home.data)) await rename(home.data, beforeOf(home));
  await rename(nextOf(home), home.data);
}

// It has come to its good end, and none since.
async function isReplaced(home: Home, key: string): Promise<boolean> {
  return (await readNote<{ key: string }>(home, doneName))?.key === key;
}

async function keepData(home: Home, key: string, ctx: DriverContext): Promise<void> {
  await writeNote(home, doneName, { key });
  await removeNote(home, noteName);
  await clearAside(home, ctx);
}

// Without the note data.before is of a replacement that has ended.
async function clearAside(home: Home, ctx: DriverContext): Promise<void> {
  for (const entry of await readdir(home.path)) {
    if (/^(data\.(next|before)|\.next-[0-9a-f]{12})$/.test(entry)) await erase(path.join(home.path, entry), ctx);
  }
}

const nextOf = (home: Home) => `${home.data}.next`;
const beforeOf = (home: Home) => `${home.data}.before`;
