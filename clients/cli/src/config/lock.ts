// A lock between processes: a file, as only that is there on every system without a package that has to be built.
import { createHash, randomUUID } from 'node:crypto';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from '../failure';

const PATIENCE_MS = 40_000;
const POLL_MS = 50;
/** The holder touches the file so often; what was not touched for much longer has no holder. */
const TOUCH_MS = 5000;
const STALE_MS = 30_000;

/** Runs the work while no other process does work under the same lock. A lock whose holder died is taken over. */
export async function withLock<Result>(file: string, work: () => Promise<Result>): Promise<Result> {
  fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  let mark = acquire(file);
  for (const end = Date.now() + PATIENCE_MS; mark === undefined; mark = acquire(file)) {
    if (Date.now() > end) throw new Failure(`Another svc holds ${file}. If none is running, delete that file.`);
    await sleep(POLL_MS);
  }
  const touching = setInterval(() => touch(file), TOUCH_MS);
  touching.unref();
  try {
    return await work();
  } finally {
    clearInterval(touching);
    release(file, mark);
  }
}

/** @returns the mark of the holder, or undefined where another process holds the lock */
function acquire(file: string): string | undefined {
  const mark = `${process.pid} ${os.hostname()} ${randomUUID()}`;
  try {
    fs.writeFileSync(file, mark, { flag: 'wx', mode: 0o600 });
    return mark;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    // Windows says EPERM of a file that is about to go.
    if (code !== 'EEXIST' && !(process.platform === 'win32' && code === 'EPERM')) throw error;
  }
  const found = readLock(file);
  return found?.isStale ? takeOver(file, found, mark) : undefined;
}

/**
 * Of several processes that find the same stale lock, one replaces it: the one that holds a second lock, which has the
 * name of that very find. Whoever is late finds another lock than the one it has judged, and waits. To delete the file
 * instead would delete the lock of whoever was faster.
 */
function takeOver(file: string, stale: FoundLock, mark: string): string | undefined {
  const second = `${file}.${stale.identity}`;
  const secondMark = acquire(second);
  if (secondMark === undefined) return undefined;
  const temporary = `${file}.${randomUUID()}.tmp`;
  try {
    const now = readLock(file);
    if (now?.identity !== stale.identity || !now.isStale) return undefined;
    fs.writeFileSync(temporary, mark, { mode: 0o600 });
    fs.renameSync(temporary, file);
    return mark;
  } finally {
    fs.rmSync(temporary, { force: true });
    release(second, secondMark);
  }
}

function release(file: string, mark: string): void {
  // Whoever was stopped for long (a laptop that slept) may have lost the lock to another process.
  if (readLock(file)?.mark === mark) fs.rmSync(file, { force: true });
}

function touch(file: string): void {
  try {
    fs.utimesSync(file, new Date(), new Date());
  } catch {
    // Taken over: there is nothing to touch.
  }
}

interface FoundLock {
  mark: string;
  /** Of this very lock, for the name of a file. */
  identity: string;
  isStale: boolean;
}

function readLock(file: string): FoundLock | undefined {
  try {
    const { ino, mtimeMs } = fs.statSync(file);
    const mark = fs.readFileSync(file, 'utf8');
    const identity = createHash('sha256').update(`${mark} ${ino}`).digest('hex').slice(0, 16);
    return { mark, identity, isStale: mtimeMs < Date.now() - STALE_MS || isHolderDead(mark) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Only of processes of this computer: a home directory may be shared. */
function isHolderDead(mark: string): boolean {
  const [pid, host] = mark.split(' ');
  // Empty for the moment between its creation and its first byte.
  if (!Number(pid) || host !== os.hostname()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
