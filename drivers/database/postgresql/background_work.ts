// Work that takes longer than one call: backups, restores, upgrades. It goes on when the call that began it runs out of
// its time; the next call with the same values joins it. It ends with this process, and is then begun anew by another
// one, which a note in its directory keeps out as long as we live.
import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull } from '../../../core/files';
import { DriverError, asDriverErrors, driverContext, untilAborted } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { isAlive, processOf } from '../../../core/process/processes';
import type { PostgresqlContext } from './cluster';

const longestMs = 24 * 3_600_000;
const retryAfterMs = 2_000;

/**
 * Begins the work of this name or joins it. `holder`: directory of the note. @throws DriverError transient while it
 * goes on
 */
export async function runInBackground<T>(
  engine: PostgresqlContext,
  name: string,
  holder: string,
  work: (ctx: DriverContext) => Promise<T>,
  ctx: DriverContext,
): Promise<T> {
  const key = path.join(holder, name);
  const begun = (engine.running.get(key)?.end as Promise<T> | undefined) ?? begin(engine, key, holder, work);
  return untilAborted(ctx.signal, begun, new DriverError('transient', 'The operation is still running.', retryAfterMs));
}

/** Breaks off all work of this holder that goes on in this process, and waits for its end. */
export async function cancelWork(engine: PostgresqlContext, holder: string, ctx: DriverContext): Promise<void> {
  const works = [...engine.running].filter(([key]) => path.dirname(key) === holder).map(([, work]) => work);
  for (const { stop } of works) stop.abort();
  await untilAborted(ctx.signal, Promise.allSettled(works.map(({ end }) => end)));
}

/** Takes away the note of whoever was killed at work; one that lives keeps it. */
export async function clearStaleLock(holder: string): Promise<void> {
  const present = await readFile(lockOf(holder), 'utf8').catch(absentIsNull);
  if (present !== null && !isHeld(present)) await rm(lockOf(holder), { force: true });
}

/** @throws DriverError transient while any such work of this directory goes on, here or in another process */
export async function requireIdle(holder: string): Promise<void> {
  const present = await readFile(lockOf(holder), 'utf8').catch(absentIsNull);
  if (present !== null && isHeld(present))
    throw new DriverError('transient', 'A backup, restore or upgrade of this server is still running.', retryAfterMs);
}

function begin<T>(
  engine: PostgresqlContext,
  key: string,
  holder: string,
  work: (ctx: DriverContext) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const end = asDriverErrors(() => withLock(holder, () => work(longContext(stop.signal)))).finally(() =>
    engine.running.delete(key),
  );
  engine.running.set(key, { end, stop });
  end.catch(() => undefined); // also where nobody waits any more
  return end;
}

// Many steps wait for the end of one signal.
function longContext(stop: AbortSignal): DriverContext {
  const context = driverContext(longestMs, stop);
  setMaxListeners(0, context.signal);
  return context;
}

async function withLock<T>(holder: string, work: () => Promise<T>): Promise<T> {
  const note = lockOf(holder);
  const own = `${process.pid} ${processOf(process.pid)?.start ?? ''} ${randomBytes(6).toString('hex')}`;
  await acquireLock(note, own);
  try {
    return await work();
  } finally {
    if ((await readFile(note, 'utf8').catch(absentIsNull)) === own) await rm(note, { force: true });
  }
}

// link(2) fails where there is one already. One that a dead process left is moved away first; if it was a live one by
// then, it goes back.
async function acquireLock(note: string, own: string): Promise<void> {
  const temporary = `${note}.${randomBytes(6).toString('hex')}`;
  const present = await readFile(note, 'utf8').catch(absentIsNull);
  if (present !== null && isHeld(present)) throw busy();
  if (present !== null) {
    await rename(note, temporary).catch(absentIsNull);
    const moved = await readFile(temporary, 'utf8').catch(absentIsNull);
    if (moved !== null && moved !== present) await link(temporary, note).catch(() => undefined);
    await rm(temporary, { force: true });
  }
  await writeFile(temporary, own, { mode: 0o600 });
  try {
    await link(temporary, note);
  } catch {
    throw busy();
  } finally {
    await rm(temporary, { force: true });
  }
}

function busy(): DriverError {
  return new DriverError('transient', 'A backup, restore or upgrade of this server is still running.', retryAfterMs);
}

function isHeld(note: string): boolean {
  const [pid, start = ''] = note.split(' ');
  return isAlive(Number(pid), start);
}

function lockOf(holder: string): string {
  return path.join(holder, '.working');
}
