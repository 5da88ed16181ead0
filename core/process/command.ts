// Programs of the host, run without a shell, with a time limit and in the C locale, so that their output can be parsed.
import { execFile } from 'node:child_process';
import { DriverError, diskFull, untilAborted, saysDiskFull } from '../driver';
import type { DriverContext } from '../driver';

/** A program that ended with another code than 0. `code` is null when a signal ended it. */
export class CommandFailed extends DriverError {
  constructor(
    readonly program: string,
    readonly code: number | null,
    readonly stdout: string,
    readonly stderr: string,
    /** For users (failure_text.ts). */
    reason: string | null = null,
  ) {
    const end = code === null ? 'was ended by a signal' : `failed with code ${code}`;
    super('transient', `The program ${program} ${end}${reason === null ? '.' : `: ${reason}`}`);
  }
}

/** Environment of programs of the host. */
export const commandEnvironment = {
  PATH: `${process.env.PATH ?? ''}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin`,
  LC_ALL: 'C',
};

/**
 * Answers what the program printed. When the context ends the program is ended too.
 * Throws CommandFailed, or DriverError `unsupported` when the host has no such program, `capacity` when its
 * disk is full, `transient` when the time is over.
 */
export function run(program: string, args: string[], ctx: DriverContext): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = {
      signal: ctx.signal,
      env: commandEnvironment,
      maxBuffer: 1 << 20,
      killSignal: 'SIGKILL' as const,
    };
    execFile(program, args, options, (error, stdout, stderr) =>
      error ? reject(toDriverError(program, error, stdout, stderr)) : resolve(stdout),
    );
  });
}

/**
 * Like `run`, for a program that must not be cut off in the middle: when the context ends the waiting ends, the program
 * goes on to its end.
 */
export function runToItsEnd(program: string, args: string[], ctx: DriverContext): Promise<string> {
  const onItsOwn = { deadline: Infinity, signal: new AbortController().signal };
  return untilAborted(ctx.signal, run(program, args, onItsOwn));
}

function toDriverError(program: string, error: Error, stdout: string, stderr: string): DriverError {
  const code: unknown = (error as NodeJS.ErrnoException).code;
  if (code === 'ENOENT')
    return new DriverError('unsupported', `The host lacks the program ${program}. An operator has to install it.`);
  if (error.name === 'AbortError')
    return new DriverError('transient', `The program ${program} did not finish in time.`);
  if (saysDiskFull(stderr)) return diskFull();
  return new CommandFailed(program, typeof code === 'number' ? code : null, stdout, stderr.trim());
}
