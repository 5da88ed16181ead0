// Runs restic, and ends it where its repository hangs: it would wait for ever, and with it all later backups.
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../core/config';
import { commandEnvironment } from '../../core/process/command';
import { CommandError } from '../command_error';
import { backupDirectory } from '../platform/backup_journal';
import { failure } from './restic_failure';

/** Variables by which restic reads credentials of its backends (manual, "Environment Variables"). */
const OF_BACKENDS = /^(?:AWS_|B2_|AZURE_|GOOGLE_|OS_|ST_|RCLONE_|RESTIC_REST_|SSH_AUTH_SOCK$|HOME$|TMPDIR$)/;
const LOCKED = /already locked/;
const LOCKED_WITHIN_MS = 5 * 60_000;
const LOCKED_POLL_MS = 1_000;
const LOW_PRIORITY = 15;
/** With `--json`: 60 lines a second unless told, of which one shows that its reader has gone. */
const PROGRESS_LINES_PER_SECOND = '1';
const STATUS_LINE = '{"message_type":"status"';
const ERROR_CHARACTERS = 100_000;
const REASON_CHARACTERS = 300;

export type Chosen = Pick<Config, 'dataDir' | 'backupStalledSeconds'> & { repository: string; passwordFile: string };

export interface End {
  code: number | null;
  out: string;
  err: string;
}

/**
 * A lock that a killed run has left is taken away, and only such a one. That of a run whose parent was killed, and that
 * goes on to its end, is waited for.
 * @throws CommandError
 */
export async function runUnlocked(
  chosen: Chosen,
  words: string[],
  wanted: readonly number[] = [0],
  signal?: AbortSignal,
): Promise<End> {
  const until = Date.now() + LOCKED_WITHIN_MS;
  let end = await runRestic(chosen, words, signal);
  while (end.code !== 0 && LOCKED.test(end.err) && Date.now() < until) {
    await sleep(LOCKED_POLL_MS);
    await runRestic(chosen, ['unlock'], signal);
    end = await runRestic(chosen, words, signal);
  }
  if (!wanted.includes(end.code ?? -1)) throw failure(chosen, end.err);
  return end;
}

/** @param signal kills it @throws CommandError where restic is not installed */
export function runRestic(chosen: Chosen, words: string[], signal?: AbortSignal): Promise<End> {
  const { dataDir, repository, passwordFile, backupStalledSeconds } = chosen;
  const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => OF_BACKENDS.test(name)));
  const env = {
    ...{ ...own, ...commandEnvironment, RESTIC_REPOSITORY: repository, RESTIC_PASSWORD_FILE: passwordFile },
    RESTIC_CACHE_DIR: path.join(backupDirectory({ dataDir }), 'cache'),
    RESTIC_PROGRESS_FPS: PROGRESS_LINES_PER_SECOND,
  };
  return new Promise((resolve, reject) => {
    const child = spawn('restic', words, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const printed = collectOutput(child);
    const kill = (): void => void child.kill('SIGKILL');
    if (signal?.aborted) kill();
    signal?.addEventListener('abort', kill, { once: true });
    // One that waits for a disk that has gone does not end, whatever it is sent.
    const unwatch = watchForStall(child, backupStalledSeconds, printed.bytes, () => {
      kill();
      resolve({ code: null, out: printed.out(), err: stalledText(printed.err(), backupStalledSeconds) });
    });
    const clear = (): void => (unwatch(), signal?.removeEventListener('abort', kill));
    child.on('spawn', () => setPriority(child.pid as number, LOW_PRIORITY));
    child.on('error', () => (clear(), reject(new CommandError('restic is not installed: apt-get install restic'))));
    child.on('close', (code) => (clear(), resolve({ code, out: printed.out(), err: printed.err() })));
  });
}

/** As restic itself would say it. @param said what it has printed, such as why it tries again and again */
function stalledText(said: string, seconds: number): string {
  const time = seconds < 60 ? `${seconds} seconds` : `${Math.round(seconds / 60)} minutes`;
  const last = said.trim().split('\n').at(-1)?.slice(0, REASON_CHARACTERS);
  const reason = last ? ` (${last})` : '';
  const fatal = `Fatal: nothing was read or written for ${time}${reason}. See whether its server and the network work`;
  return `${said}\n${fatal}`;
}

interface Printed {
  out(): string;
  err(): string;
  bytes(): number;
}

/** Without lines of its progress: those of hours are more than a string holds. */
function collectOutput(child: ChildProcess): Printed {
  let [out, rest, err, bytes] = ['', '', '', 0];
  child.stdout?.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (!line.startsWith(STATUS_LINE)) out += `${line}\n`;
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    err = (err + chunk.toString()).slice(-ERROR_CHARACTERS);
  });
  return { out: () => out + rest, err: () => err, bytes: () => bytes };
}

const CHECKS = 20;
/** Less in all of the time is the runtime of restic itself. */
const MOVED_BYTES = 64 * 1024;
const BUSY_SHARE = 0.05;
const TICKS_PER_SECOND = 100;

interface Activity {
  at: number;
  bytes: number;
  ticks: number;
}

/** Calls `stalled` once the process has neither moved bytes nor computed for so long. @returns ends the watch */
function watchForStall(child: ChildProcess, seconds: number, printed: () => number, stalled: () => void): () => void {
  const activityOf = (): Activity => ({ at: Date.now(), ...readActivity(child.pid, printed()) });
  let last = activityOf();
  const timer = setInterval(
    () => {
      const now = activityOf();
      const isBusy = now.ticks - last.ticks > BUSY_SHARE * seconds * TICKS_PER_SECOND;
      if (now.bytes - last.bytes >= MOVED_BYTES || isBusy) last = now;
      else if (now.at - last.at >= seconds * 1000) stalled();
    },
    (seconds * 1000) / CHECKS,
  );
  return () => clearInterval(timer);
}

/** Bytes of files, pipes and connections, and time of the processor (proc(5): io, stat). */
function readActivity(pid: number | undefined, printedBytes: number): Omit<Activity, 'at'> {
  try {
    const io = readFileSync(`/proc/${pid}/io`, 'utf8');
    const moved = [...io.matchAll(/^[rw]char: (\d+)$/gm)].reduce((sum, [, bytes]) => sum + Number(bytes), 0);
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { bytes: moved - printedBytes, ticks: Number(fields[11]) + Number(fields[12]) };
  } catch {
    return { bytes: 0, ticks: 0 };
  }
}
