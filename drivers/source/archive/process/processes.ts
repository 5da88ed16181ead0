// Archives are read in processes of their own: 300,000 empty entries take seconds of a processor, in which the API
// would answer nobody.
import { fork, type ChildProcess } from 'node:child_process';
import { checkpoint, diskFull, DriverError, type DriverContext } from '../../../../core/driver';
import { openProcessChannel } from '../../../../core/process/channel';
import { inheritedNodeArguments } from '../../../../core/process/node_arguments';
import { SourceError } from '../../../source';
import type { ArchiveLimits, ArchiveTotals } from '../../archive';
import { brokenArchive } from '../entry';
import type { Answer } from './process';

/** Of its heap; content passes through in pieces. */
const HEAP_MB = 384;
/** A timer of Node is not longer. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * Validates the whole archive without writing anything.
 * @throws SourceError for an invalid source, DriverError `transient` once the context has expired
 */
export function checkUpload(file: string, limits: ArchiveLimits, ctx: DriverContext): Promise<ArchiveTotals> {
  return inProcess('check', [file, limits], ctx);
}

/**
 * Extracts the files of an archive into a directory; files of an interrupted call are removed first. No link in it is
 * ever followed. @throws SourceError; DriverError `capacity` for a full disk, `transient` once the context has expired
 */
export function unpackUpload(
  file: string,
  directory: string,
  limits: ArchiveLimits,
  ctx: DriverContext,
): Promise<ArchiveTotals> {
  return inProcess('unpack', [file, limits], ctx, directory);
}

async function inProcess(
  name: 'check' | 'unpack',
  args: [file: string, limits: ArchiveLimits],
  ctx: DriverContext,
  directory?: string,
): Promise<ArchiveTotals> {
  checkpoint(ctx);
  const child = start();
  const kill = (): void => void child.kill('SIGKILL');
  ctx.signal.addEventListener('abort', kill, { once: true });
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const channel = openProcessChannel(child, {});
  let hasEnded = false;
  void channel.closed.then(() => (hasEnded = true));
  try {
    const withinMs = Math.min(ctx.deadline - Date.now(), TIMER_MS_MAX);
    return totalsOf(await channel.call<Answer>(name, ...args, withinMs, directory));
  } catch (error) {
    checkpoint(ctx);
    if (!hasEnded) throw error;
    await exited;
    if (child.signalCode === 'SIGABRT') throw brokenArchive('The archive needs too much memory to be read.');
    throw new DriverError('transient', 'The archive could not be read. Try again.');
  } finally {
    ctx.signal.removeEventListener('abort', kill);
    kill();
    // What it writes is written.
    await exited;
  }
}

function start(): ChildProcess {
  const execArgv = inheritedNodeArguments().filter((one) => !/size=/.test(one));
  return fork(require.resolve('./process'), [], {
    execArgv: [...execArgv, `--max-old-space-size=${HEAP_MB}`],
    // No secret of the platform: what it reads is hostile.
    env: { PATH: process.env.PATH, NODE_ENV: process.env.NODE_ENV },
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
}

function totalsOf(answer: Answer): ArchiveTotals {
  if ('failure' in answer) throw new SourceError(answer.failure, answer.message);
  if ('isDiskFull' in answer) throw diskFull();
  return answer;
}
