// Writing to a file while the next pieces arrive: what has come meanwhile goes in one call.
import type { FileHandle } from 'node:fs/promises';

interface WriteBehind {
  /** Resolves when more may come. @throws what a write before has failed with */
  write(piece: Buffer): Promise<void>;
  /** Resolves when all of it is written. @throws Error of the file system */
  end(): Promise<void>;
  /** Writes what has come, and resolves when nothing is being written any more, whatever became of it. */
  settle(): Promise<void>;
}

interface WriteBehindOptions {
  /** Held back until the disk has caught up. */
  waitingBytesMax?: number;
  /** A call of the file system waits for so many: each is a turn of a thread, which a busy host makes wait. */
  batchBytes?: number;
  /** Called with each piece that was written. */
  written?: (piece: Buffer) => void;
}

export function openWriteBehind(handle: FileHandle, options: WriteBehindOptions = {}): WriteBehind {
  const { batchBytes = 2 ** 18, waitingBytesMax = 2 * batchBytes, written } = options;
  let waiting: Buffer[] = [];
  let bytes = 0;
  let running: Promise<void> | null = null;
  let failure: unknown = null;
  const run = async (least: number): Promise<void> => {
    try {
      while (waiting.length && bytes >= least && failure === null) {
        const batch = waiting;
        [waiting, bytes] = [[], 0];
        await writeAll(handle, batch);
        if (written) for (const piece of batch) written(piece);
      }
    } catch (error) {
      failure = error;
    }
    running = null;
  };
  const flush = async (): Promise<void> => {
    await running;
    await (running = run(0));
  };
  const requireWhole = (): void => {
    if (failure !== null) throw failure;
  };
  return {
    async write(piece) {
      requireWhole();
      waiting.push(piece);
      bytes += piece.length;
      if (bytes >= batchBytes) running ??= run(batchBytes);
      if (bytes < waitingBytesMax) return;
      await running;
      requireWhole();
    },
    end: () => flush().then(requireWhole),
    settle: flush,
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
