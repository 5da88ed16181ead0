// Runs a git process: without a shell, in its own process group, isolated from the environment and configuration of the
// platform and the host's users, and with a limit of its disk usage.
import { spawn, type ChildProcess } from 'node:child_process';
import { lstat, readdir } from 'node:fs/promises';
import path from 'node:path';
import { DriverError, type DriverContext } from '../../core/driver';
import { watchStall } from './stall';

interface GitOptions {
  /** The bare repository, which is also the working directory. */
  gitDir?: string;
  config?: Settings;
  env?: Record<string, string>;
  /** The process is killed when the folder exceeds the limit. */
  sizeLimit?: { folder: string; limitBytes: number };
  /**
   * Called with chunks of the output; returns 'enough' to end the process as successful. Default: output is collected.
   */
  onOutput?: (chunk: Buffer) => 'enough' | undefined;
  /** Called with the id of the process once it runs. */
  onStart?: (pid: number) => Promise<void>;
  /** It asks a remote, and is killed when that is silent. */
  isRemote?: boolean;
  /** Default: UTF-8. */
  encoding?: 'utf8' | 'latin1';
}

export type Settings = [key: string, value: string][];

type GitFailureReason = 'code' | 'too_large' | 'time' | 'stalled';

/** git failed. `stderr` is parsed by programs, never shown to users. */
export class GitFailed extends Error {
  constructor(
    readonly reason: GitFailureReason,
    readonly stderr: string,
    /** For `stalled`: how long nothing had moved. */
    readonly stallMs = 0,
  ) {
    super(`git failed: ${reason}`);
  }
}

/** Why the platform killed a process; the first reason counts. */
interface Termination {
  reason: Ending | null;
  kill(reason: Ending): void;
}

type Ending = 'time' | 'stalled' | 'too_large' | 'enough';

const outputBytesMax = 64 << 20;
const errorBytesMax = 64 << 10;
const watchEveryMs = 250;
// A server may count objects of a large repository for a while before it sends the first.
const STALL_MS = 120_000;

// Harmless faults of old commits; dangerous ones (paths, links, .gitmodules) remain errors.
const ignoredFaults = [
  'badDate',
  'badDateOverflow',
  'badEmail',
  'badFilemode',
  'badName',
  'badTimezone',
  'missingAuthor',
  'missingEmail',
  'missingNameBeforeEmail',
  'missingSpaceBeforeDate',
  'missingSpaceBeforeEmail',
  'multipleAuthors',
  'zeroPaddedDate',
  'zeroPaddedFilemode',
];

const hardening: Settings = [
  ['core.hooksPath', '/dev/null'],
  ['core.askPass', ''],
  ['core.fsmonitor', 'false'],
  ['core.attributesFile', '/dev/null'],
  ['core.symlinks', 'true'],
  ['core.autocrlf', 'false'],
  ['core.protectHFS', 'true'],
  ['core.protectNTFS', 'true'],
  ['credential.helper', ''],
  ['protocol.allow', 'never'],
  // A redirect could bypass the address check, and leak the credential: redirects are followed by
  // drivers/source/remote.ts.
  ['http.followRedirects', 'false'],
  ['http.lowSpeedLimit', '1'],
  ['http.lowSpeedTime', '60'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['transfer.unpackLimit', '1'],
  ['submodule.recurse', 'false'],
  ['fetch.recurseSubmodules', 'false'],
  ['fetch.fsckObjects', 'true'],
  ...ignoredFaults.map((fault): [string, string] => [`fetch.fsck.${fault}`, 'ignore']),
];

// Which certificates are trusted is the operator's to say; nothing else of our environment is for git.
const inheritedVariables = ['GIT_SSL_CAINFO', 'GIT_SSL_CAPATH', 'SSL_CERT_FILE', 'SSL_CERT_DIR'];

/** Runs git and returns its output. @throws GitFailed, DriverError unsupported */
export function git(args: string[], options: GitOptions, ctx: DriverContext): Promise<string> {
  return run('git', args, options, ctx);
}

/** Runs ssh in the same way as git does. @throws GitFailed */
export function ssh(args: string[], ctx: DriverContext): Promise<string> {
  return run('ssh', args, {}, ctx);
}

async function run(program: 'git' | 'ssh', args: string[], options: GitOptions, ctx: DriverContext): Promise<string> {
  if (ctx.signal.aborted) throw new GitFailed('time', '');
  const child = spawn(program, args, {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: gitEnvironment(options),
    cwd: options.gitDir ?? '/',
  });
  const { pid } = child;
  const ends = terminationOf(child);
  // Attach handlers before any await: a fast git could exit before.
  const received = { bytes: 0 };
  const ended = collectOutput(child, ends, options, received);
  ended.catch(() => {});
  const onAbort = () => ends.kill('time');
  ctx.signal.addEventListener('abort', onAbort, { once: true });
  if (ctx.signal.aborted) onAbort();
  const stops = options.sizeLimit ? [watchSize(options.sizeLimit, ends)] : [];
  const { stallMs = STALL_MS } = ctx;
  if (options.isRemote && pid !== undefined) {
    const folder = options.sizeLimit?.folder;
    const bytes = async () => received.bytes + (folder === undefined ? 0 : await measureDirectory(folder));
    stops.push(watchStall(pid, stallMs, bytes, () => ends.kill('stalled')));
  }
  try {
    if (pid !== undefined) await options.onStart?.(pid);
    return await ended;
  } catch (error) {
    throw error instanceof GitFailed && error.reason === 'stalled'
      ? new GitFailed('stalled', error.stderr, stallMs)
      : error;
  } finally {
    stops.forEach((stop) => stop());
    ctx.signal.removeEventListener('abort', onAbort);
  }
}

/** Kills the process group, if it still exists. */
export function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it has ended already
  }
}

/** Size of all files in a folder in bytes; files removed during the walk are ignored. */
export async function measureDirectory(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const sizes = await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map((entry) =>
        lstat(path.join(entry.parentPath, entry.name)).then(
          ({ size }) => size,
          () => 0,
        ),
      ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

function terminationOf(child: ChildProcess): Termination {
  const ends: Termination = {
    reason: null,
    kill(reason) {
      ends.reason ??= reason;
      if (child.pid !== undefined) killGroup(child.pid);
    },
  };
  return ends;
}

function gitEnvironment({ gitDir, config = [], env = {} }: GitOptions): NodeJS.ProcessEnv {
  const settings = [...hardening, ...config];
  const numbered = settings.flatMap(([key, value], i) => [
    [`GIT_CONFIG_KEY_${i}`, key],
    [`GIT_CONFIG_VALUE_${i}`, value],
  ]);
  return {
    PATH: `${process.env.PATH ?? ''}:/usr/local/bin:/usr/bin:/bin`,
    LC_ALL: 'C',
    HOME: '/nonexistent',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_LAZY_FETCH: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(numbered),
    ...Object.fromEntries(
      inheritedVariables.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
    ),
    ...(gitDir === undefined ? {} : { GIT_DIR: gitDir }),
    ...env,
  };
}

function watchSize({ folder, limitBytes }: NonNullable<GitOptions['sizeLimit']>, ends: Termination): () => void {
  let timer: NodeJS.Timeout;
  let isOver = false;
  const poll = async () => {
    if ((await measureDirectory(folder)) > limitBytes) return ends.kill('too_large');
    // Git may have ended during the measurement.
    if (!isOver) timer = setTimeout(() => void poll(), watchEveryMs);
  };
  timer = setTimeout(() => void poll(), watchEveryMs);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

function collectOutput(
  child: ChildProcess,
  ends: Termination,
  { onOutput, encoding }: GitOptions,
  received: { bytes: number },
): Promise<string> {
  const output: Buffer[] = [];
  let errors = '';
  const collect = (chunk: Buffer) => {
    if (received.bytes > outputBytesMax) return ends.kill('too_large');
    output.push(chunk);
  };
  child.stdout!.on('data', (chunk: Buffer) => {
    received.bytes += chunk.length;
    if (onOutput === undefined) return collect(chunk);
    if (ends.reason === null && onOutput(chunk) === 'enough') ends.kill('enough');
  });
  child.stderr!.on('data', (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-errorBytesMax)));
  return new Promise((resolve, reject) => {
    child.on('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'ENOENT'
          ? new DriverError('unsupported', 'Git is not installed on this platform. Ask the operator to install it.')
          : error,
      ),
    );
    child.on('close', (code) => {
      if (code === 0 || ends.reason === 'enough') return resolve(Buffer.concat(output).toString(encoding));
      reject(new GitFailed(ends.reason ?? 'code', errors));
    });
  });
}
