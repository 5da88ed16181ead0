// Files of the person, by the XDG Base Directory Specification.
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from '../failure';

const LOCK_STALE_MS = 30_000;
const LOCK_PATIENCE_MS = 20_000;

export function configDirectory(): string {
  const given = process.env.XDG_CONFIG_HOME;
  // A relative path there is invalid, says the specification.
  const base = given && path.isAbsolute(given) ? given : path.join(os.homedir(), '.config');
  return path.join(base, 'svc');
}

/** Writes a file that nobody else may read, whole or not at all. */
export function writePrivateFile(file: string, text: string): void {
  fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}.tmp`;
  const handle = fs.openSync(temporary, 'w', 0o600);
  try {
    fs.writeFileSync(handle, text);
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
  fs.renameSync(temporary, file);
}

export function readFileIfThere(file: string): string | undefined {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw new Failure(`Could not read ${file}: ${(error as Error).message}.`);
  }
}

/** Runs the work while no other process does work under the same lock. A lock whose holder died is taken over. */
export async function withLock<Result>(file: string, work: () => Promise<Result>): Promise<Result> {
  fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  for (const end = Date.now() + LOCK_PATIENCE_MS; !tryLock(file); await sleep(50))
    if (Date.now() > end) throw new Failure(`Another svc holds ${file}. If none is running, delete that file.`);
  try {
    return await work();
  } finally {
    fs.rmSync(file, { force: true });
  }
}

function tryLock(file: string): boolean {
  try {
    fs.writeFileSync(file, String(process.pid), { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    if (!isHolderAlive(file)) fs.rmSync(file, { force: true });
    return false;
  }
}

function isHolderAlive(file: string): boolean {
  try {
    if (fs.statSync(file).mtimeMs < Date.now() - LOCK_STALE_MS) return false;
    const holder = Number(fs.readFileSync(file, 'utf8'));
    // Empty for the moment between its creation and its first byte.
    if (holder) process.kill(holder, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
