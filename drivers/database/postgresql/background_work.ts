// Work that takes longer than one call: backups, restores, upgrades. It continues when the initiating call times out;
// the next call with the same values joins it. It ends with this process, and is restarted by another one; a lock file
// in its directory excludes other processes while this one lives.
import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull } from '../../../core/files';
import { StillRunning, asDriverErrors, driverContext, untilAborted } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { isAlive, processOf } from '../../../core/process/processes';
import type { PostgresqlContext } from './cluster';

const longestMs = 24 * 3_600_000;

/**
 * Starts the work of this name, or joins it. `holder`: directory of the lock. @throws StillRunning
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
  return untilAborted(ctx.signal, begun, new StillRunning());
}

/** Aborts all work of this holder in this process, and waits for its end. */
export async function cancelWork(engine: PostgresqlContext, holder: string, ctx: DriverContext): Promise<void> {
  const works = [...engine.running].filter(([key]) => path.dirname(key) === holder).map(([, work]) => work);
  for (const { stop } of works) stop.abort();
  await untilAborted(ctx.signal, Promise.allSettled(works.map(({ end }) => end)));
}

/** Removes the lock of a killed process; a live process keeps its lock. */
export async function clearStaleLock(holder: string): Promise<void> {
  const present = await readFile(lockOf(holder), 'utf8').catch(absentIsNull);
  if (present !== null && !isHeld(present)) await rm(lockOf(holder), { force: true });
}

/** @throws StillRunning while work on this directory is running, here or in another process */
export async function requireIdle(holder: string): Promise<void> {
  const present = await readFile(lockOf(holder), 'utf8').catch(absentIsNull);
  if (present !== null && isHeld(present)) throw busy();
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
  end.catch(() => undefined); // handled even without a waiting caller
  return end;
}

// Many listeners share one signal.
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

// link(2) fails where a lock exists. The lock of a dead process is first moved away; if it has meanwhile become the
// lock of a live one, it is moved back.
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

function busy(): StillRunning {
  return new StillRunning('A backup, restore or upgrade of this server is still running.');
}

function isHeld(note: string): boolean {
  const [pid, start = ''] = note.split(' ');
  return isAlive(Number(pid), start);
}

function lockOf(holder: string): string {
  return path.join(holder, '.working');
}
