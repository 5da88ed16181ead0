// Other processes, for tests that kill them. Reads /proc where it exists: small containers have no ps.
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import * as path from 'node:path';

const ROOT = path.resolve(__dirname, '../../..');
const NOBODY = 65534;

export interface ProcessRow {
  pid: number;
  parent: number;
  args: string;
}

/** A Node process that runs this program, which may require TypeScript sources relative to the root of the project. */
export function spawnProgram(
  program: string,
  args: string[],
  options: Pick<SpawnOptions, 'uid' | 'gid' | 'env' | 'detached'> = {},
): ChildProcess {
  const hook = path.join(ROOT, 'test/support/runner/typescript.js');
  return spawn(process.execPath, ['--require', hook, '-e', program, ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...options,
  });
}

/** For spawnProgram: a user whom permissions bind, also when the tests run as root. */
export function unprivileged(): { uid?: number; gid?: number } {
  return process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
}

/** What the child says first, without line end. Rejects with its complaint, or when it ends silently. */
export function firstOutput(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.stdout!.once('data', (chunk: Buffer) => resolve(chunk.toString().trim()));
    child.stderr!.once('data', (chunk: Buffer) => reject(new Error(chunk.toString().trim())));
    child.once('exit', () => reject(new Error('ended without a word')));
  });
}

export async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** Sends a signal to each. One that has ended meanwhile, by itself or with another of them, is none to wonder about. */
export function signalAll(pids: Iterable<number>, signal: NodeJS.Signals = 'SIGKILL'): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** Every process whose arguments hold this text. */
export function processesWith(text: string): ProcessRow[] {
  const rows = fs.existsSync('/proc/self/stat') ? rowsOfProc() : rowsOfPs();
  return rows.filter(({ args }) => args.includes(text));
}

function rowsOfProc(): ProcessRow[] {
  const pids = fs.readdirSync('/proc').map(Number).filter(Boolean);
  return pids.flatMap((pid) => {
    try {
      const parent = Number(
        fs
          .readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) . /s, '')
          .split(' ')[0],
      );
      return [{ pid, parent, args: fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ') }];
    } catch {
      return []; // ended meanwhile
    }
  });
}

function rowsOfPs(): ProcessRow[] {
  const lines = spawnSync('ps', ['-axwwo', 'pid=,ppid=,args='], { encoding: 'utf8' }).stdout.split('\n');
  return lines.flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line);
    return match ? [{ pid: Number(match[1]), parent: Number(match[2]), args: match[3] ?? '' }] : [];
  });
}
