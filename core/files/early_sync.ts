// Starts writeback while a file is still being received. The kernel keeps dirty pages in memory until a sync: without
// this, the disk idles while a layer is received, and the client waits for the whole writeback at the end.
import type { FileHandle } from 'node:fs/promises';

const EVERY_BYTES = 32 * 2 ** 20;

interface EarlySync {
  /** More bytes were written. */
  count(bytes: number): void;
  /** Waits for pending syncs. @throws the error of any of them: the kernel reports a failed writeback only once */
  end(): Promise<void>;
}

export function openEarlySync(handle: FileHandle): EarlySync {
  let bytes = 0;
  let running: Promise<void> | null = null;
  let failure: unknown = null;
  return {
    count(more) {
      bytes += more;
      if (bytes < EVERY_BYTES || running !== null) return;
      bytes = 0;
      running = handle.datasync().then(
        () => void (running = null),
        (error: unknown) => void ([running, failure] = [null, error]),
      );
    },
    async end() {
      await running;
      if (failure !== null) throw failure;
    },
  };
}
