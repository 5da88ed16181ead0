// The files of a directory as a stream of GNU tar, and back. tar walks by descriptors of directories: a program that
// puts a link in the place of a directory meanwhile leads it nowhere.
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { checkpoint, DriverError, diskFull, saysDiskFull, type DriverContext } from '../../core/driver';
import { CommandFailed, commandEnvironment, run } from '../../core/process/command';

const LOW_PRIORITY = 15;
const SAID_LINES = 200;
const OWNERS = ['--numeric-owner', '--xattrs', '--xattrs-include=*', '--acls'];
/** A line about a file that is left out, or whose content is not all there. */
const UNREAD = /Warning: Cannot |Warning: Read error/;
/** What tar says of a full disk where a write was cut short. */
const CUT_SHORT = /Wrote only \d+ of \d+ bytes/;
const CHANGED_MEANWHILE = 1;

export interface Packing {
  /** @throws DriverError where tar fails */
  content: AsyncIterable<Buffer>;
  /** How many files could not be read. Known at the end of the content. */
  unread(): number;
}

/** Files that change or go while they are read are no errors. Sockets are left out, other file systems too. */
export function packFiles(directory: string, ctx: DriverContext): Packing {
  let unread = 0;
  const words = [
    ...['--create', '--file=-', `--directory=${directory}`, '--sparse', '--one-file-system', ...OWNERS],
    ...['--ignore-failed-read', '--warning=no-file-ignored', '--warning=no-file-changed'],
    ...['--warning=no-file-removed', '--warning=no-file-shrank', '--', '.'],
  ];
  const count = (line: string): void => void (unread += UNREAD.test(line) ? 1 : 0);
  return { content: outputOf(words, ctx, count), unread: () => unread };
}

/**
 * Writes the files of a stream of tar to an empty directory, which nothing else uses. Device files are left out: in the
 * hands of a tenant they would be disks of the host.
 * @throws DriverError capacity where the disk is full, and what the content throws
 */
export async function unpackFiles(
  content: AsyncIterable<Buffer>,
  directory: string,
  ctx: DriverContext,
): Promise<void> {
  const tar = begin(
    [
      ...['--extract', '--file=-', `--directory=${directory}`, '--preserve-permissions', ...OWNERS],
      '--delay-directory-restore',
    ],
    ctx,
  );
  tar.child.stdout.resume();
  try {
    await pipeline(Readable.from(content, { objectMode: false }), tar.child.stdin);
  } catch (error) {
    tar.child.kill('SIGKILL');
    // A program that has ended says why.
    if (!hasEnded(error)) throw error;
  }
  await tar.ended;
  checkpoint(ctx);
  await run('find', [directory, '-xdev', '(', '-type', 'b', '-o', '-type', 'c', ')', '-delete'], ctx);
}

interface Tar {
  child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** @throws DriverError */
  ended: Promise<void>;
}

function begin(words: readonly string[], ctx: DriverContext, heard: (line: string) => void = () => undefined): Tar {
  const child = spawn('tar', words, { env: commandEnvironment, stdio: ['pipe', 'pipe', 'pipe'] });
  const said: string[] = [];
  createInterface({ input: child.stderr.setEncoding('latin1') }).on('line', (line) => {
    heard(line);
    if (said.length < SAID_LINES) said.push(line);
  });
  child.stdin.on('error', () => undefined);
  child.on('spawn', () => setPriority(child.pid as number, LOW_PRIORITY));
  const stop = (): void => void child.kill('SIGKILL');
  ctx.signal.addEventListener('abort', stop, { once: true });
  const ended = new Promise<void>((resolve, reject) => {
    child.on('error', () =>
      reject(new DriverError('unsupported', 'The host lacks the program tar. An operator has to install it.')),
    );
    child.on('close', (code) => {
      ctx.signal.removeEventListener('abort', stop);
      if (code === 0 || code === CHANGED_MEANWHILE) resolve();
      else reject(failureOf(code, said.join('\n'), ctx));
    });
  });
  ended.catch(() => undefined);
  return { child, ended };
}

function failureOf(code: number | null, stderr: string, ctx: DriverContext): DriverError {
  if (ctx.signal.aborted) return new DriverError('transient', 'The step did not finish in time.');
  return saysDiskFull(stderr) || CUT_SHORT.test(stderr) ? diskFull() : new CommandFailed('tar', code, '', stderr);
}

// Started by its first reader: Node drops the output of a program that ends before anyone reads it.
async function* outputOf(
  words: readonly string[],
  ctx: DriverContext,
  heard: (line: string) => void,
): AsyncGenerator<Buffer> {
  const { child, ended } = begin(words, ctx, heard);
  try {
    child.stdin.end();
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
      checkpoint(ctx);
      yield chunk;
    }
    await ended;
  } finally {
    child.kill('SIGKILL');
  }
}

function hasEnded(error: unknown): boolean {
  return ['EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET'].includes((error as NodeJS.ErrnoException).code ?? '');
}
