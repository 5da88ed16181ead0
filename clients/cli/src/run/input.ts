// Standard input, and at a terminal its size: of the person's computer, handed to whichever connection there is.
import { spawnSync } from 'node:child_process';
import { notice } from '../output/notice';

export interface Target {
  input(bytes: Buffer): Promise<void>;
  command(command: object): Promise<void>;
}

export interface Input {
  /** What is read goes there from now on. */
  attach(target: Target): void;
  /** Reads no more before there is another target. */
  detach(): void;
  /** Gives the terminal back. */
  release(): void;
}

const INTERRUPTED = 130;
const SIDE_MAX = 4096;

/** @param hasTerminal whether the command has one, so that every key is its own */
export function bindInput(hasTerminal: boolean): Input {
  const { stdin, stdout } = process;
  let target: Target | undefined;
  let hasEnded = false;
  let interrupts = 0;
  // Some terminals say that they have no size, or one that the protocol does not have.
  const resize = (): void => {
    const [rows, columns] = [stdout.rows, stdout.columns].map((side) => Math.min(side || 0, SIDE_MAX));
    if (rows && columns) void target?.command({ type: 'resize', rows, columns });
  };
  const end = (): void => {
    hasEnded = true;
    void target?.command({ type: 'close_stdin' });
  };
  const read = (bytes: Buffer): void => {
    // The server reads as fast as the command does.
    stdin.pause();
    void target?.input(bytes).then(() => target && stdin.resume());
  };
  // At a terminal, Ctrl-C is a key of the command. Elsewhere it gets the signal, and the second time it is left alone.
  const interrupt = (): void => {
    interrupts += 1;
    if (interrupts > 1 || !target) process.exit(INTERRUPTED);
    void target.command({ type: 'signal', signal: 'SIGINT' });
  };
  const fail = (error: Error): void => {
    notice(`Standard input could not be read: ${error.message}. The command gets an end of input.`);
    end();
  };
  if (hasTerminal) setRaw();
  if (hasTerminal) stdout.on('resize', resize);
  process.on('SIGINT', interrupt);
  stdin.on('data', read).once('end', end).once('error', fail);
  stdin.pause();
  return {
    attach(given) {
      target = given;
      if (hasTerminal) resize();
      if (hasEnded) end();
      else stdin.resume();
    },
    detach() {
      target = undefined;
      stdin.pause();
    },
    release() {
      if (hasTerminal) stdin.setRawMode(false);
      stdout.off('resize', resize);
      process.off('SIGINT', interrupt);
      stdin
        .off('data', read)
        .off('end', end)
        .off('error', fail)
        .on('error', () => {});
      stdin.pause();
      // A file has nothing to let go of.
      (stdin as Partial<typeof stdin>).unref?.();
    },
  };
}

/**
 * Every byte passes as it is, both ways. Node leaves the output its line ends (libuv sets ONLCR); the terminal of the
 * command makes them, where it is to. Node puts all of it back at the end.
 */
function setRaw(): void {
  process.stdin.setRawMode(true);
  if (process.platform !== 'win32') spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
}
