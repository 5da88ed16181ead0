// Writing to a file while the next pieces arrive: what has come meanwhile goes in one call.
import type { FileHandle } from 'node:fs/promises';

/** One write costs a thread its turn, however little it writes. */
const BATCH_BYTES = 2 ** 18;
/** Held back until the disk has caught up. */
const WAITING_BYTES_MAX = 2 ** 19;

export interface WriteBehind {
  /** Resolves when more may come. @throws what a write before has failed with */
  write(piece: Buffer): Promise<void>;
  /** Resolves when all of it is written. @throws Error of the file system */
  end(): Promise<void>;
  /** Resolves when nothing is being written any more, whatever became of it. */
  settle(): Promise<void>;
}

export function openWriteBehind(handle: FileHandle): WriteBehind {
  let waiting: Buffer[] = [];
  let bytes = 0;
  let running: Promise<void> | null = null;
  let failure: unknown = null;
  let least = BATCH_BYTES;
  const run = async (): Promise<void> => {
    try {
      while (waiting.length && bytes >= least && failure === null) {
        const batch = waiting;
        [waiting, bytes] = [[], 0];
        await writeAll(handle, batch);
      }
    } catch (error) {
      failure = error;
    }
    running = null;
  };
  const requireWhole = (): void => {
    if (failure !== null) throw failure;
  };
  return {
    async write(piece) {
      requireWhole();
      waiting.push(piece);
      bytes += piece.length;
      if (bytes >= least) running ??= run();
      if (bytes < WAITING_BYTES_MAX) return;
      await running;
      requireWhole();
    },
    async end() {
      least = 0;
      await running;
      await run();
      requireWhole();
    },
    settle: async () => void (await running),
  };
}

async function writeAll(handle: FileHandle, batch: readonly Buffer[]): Promise<void> {
  const total = batch.reduce((sum, { length }) => sum + length, 0);
  const { bytesWritten } = await handle.writev(batch);
  if (bytesWritten === total) return;
  const rest = Buffer.concat(batch).subarray(bytesWritten);
  for (let offset = 0; offset < rest.length;)
    offset += (await handle.write(rest, offset, rest.length - offset)).bytesWritten;
}
