// One git process: without a shell, in a process group of its own, with an environment and a configuration that hold
// nothing of ours or of the host's users, and with a watch over the space that it takes.
import { spawn, type ChildProcess } from 'node:child_process';
import { lstat, readdir } from 'node:fs/promises';
import path from 'node:path';
import { DriverError, type DriverContext } from '../../core/driver';

interface GitOptions {
  /** The bare repository; also where the process starts. */
  gitDir?: string;
  config?: Settings;
  env?: Record<string, string>;
  /** The process is ended when the folder grows beyond it. */
  sizeLimit?: { folder: string; limitBytes: number };
  /** Gets the output in pieces; answer 'enough' to end the process as if it had succeeded. Else it is collected. */
  onOutput?: (chunk: Buffer) => 'enough' | undefined;
  /** Called with the id of the process once it runs. */
  onStart?: (pid: number) => Promise<void>;
}

export type Settings = [key: string, value: string][];

type GitFailureReason = 'code' | 'too_large' | 'time';

/** git failed. `stderr` is for programs to look at, never for users. */
export class GitFailed extends Error {
  constructor(
    readonly reason: GitFailureReason,
    readonly stderr: string,
  ) {
    super(`git failed: ${reason}`);
  }
}

/** Why we ended a process; the first reason counts. */
interface Termination {
  reason: 'time' | 'too_large' | 'enough' | null;
  kill(reason: 'time' | 'too_large' | 'enough'): void;
}

const outputBytesMax = 64 << 20;
const errorBytesMax = 64 << 10;
const watchEveryMs = 250;

// Faults of old commits that no one can mend any more; what could do harm (paths, links, .gitmodules) stays an error.
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
  // A redirect could lead past the check of the address, and carry the credential along: drivers/source/remote.ts
  // follows them.
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

/** Answers what git printed. @throws GitFailed, DriverError unsupported */
export function git(args: string[], options: GitOptions, ctx: DriverContext): Promise<string> {
  return run('git', args, options, ctx);
}

/** The same for the program ssh, as git starts it. @throws GitFailed */
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
  // Before anything is waited for: a quick git would end unheard.
  const ended = collectOutput(child, ends, options);
  ended.catch(() => {});
  const onAbort = () => ends.kill('time');
  ctx.signal.addEventListener('abort', onAbort, { once: true });
  if (ctx.signal.aborted) onAbort();
  const stopWatching = options.sizeLimit ? watchSize(options.sizeLimit, ends) : () => {};
  try {
    if (pid !== undefined) await options.onStart?.(pid);
    return await ended;
  } finally {
    stopWatching();
    ctx.signal.removeEventListener('abort', onAbort);
  }
}

/** Ends a process and all of its group, where there is one still. */
export function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it has ended already
  }
}

/** Bytes of all files in a folder; what goes away meanwhile counts nothing. */
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
  const poll = async () => {
    if ((await measureDirectory(folder)) > limitBytes) return ends.kill('too_large');
    timer = setTimeout(() => void poll(), watchEveryMs);
  };
  timer = setTimeout(() => void poll(), watchEveryMs);
  return () => clearTimeout(timer);
}

function collectOutput(child: ChildProcess, ends: Termination, { onOutput }: GitOptions): Promise<string> {
  const output: Buffer[] = [];
  let bytes = 0;
  let errors = '';
  const collect = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > outputBytesMax) return ends.kill('too_large');
    output.push(chunk);
  };
  child.stdout!.on('data', (chunk: Buffer) => {
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
      if (code === 0 || ends.reason === 'enough') return resolve(Buffer.concat(output).toString());
      reject(new GitFailed(ends.reason ?? 'code', errors));
    });
  });
}
