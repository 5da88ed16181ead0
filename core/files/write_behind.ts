// Write-behind: pieces that arrive during a write are written together in one call.
import type { FileHandle } from 'node:fs/promises';

interface WriteBehind {
  /** Resolves when the next piece may be written. @throws the error of an earlier write */
  write(piece: Buffer): Promise<void>;
  /** Resolves when everything is written. @throws Error of the file system */
  end(): Promise<void>;
  /** Waits for pending writes, and ignores their errors. */
  settle(): Promise<void>;
}

interface WriteBehindOptions {
  /** Pieces are held back beyond this size until the disk has caught up. */
  waitingBytesMax?: number;
  /** Minimum size of a write: each one is a thread pool task, which queues on a busy host. */
  batchBytes?: number;
  /** Called with each piece once it is written. */
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
