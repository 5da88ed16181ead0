// Writing back to the disk while more of a file arrives. The kernel keeps what is written in memory until somebody
// syncs it: without this the disk idles while a layer is received, and its sender waits for all of it at the end.
import type { FileHandle } from 'node:fs/promises';

const EVERY_BYTES = 32 * 2 ** 20;

interface EarlySync {
  /** So much more has been written. */
  count(bytes: number): void;
  /** Resolves when none is under way. @throws what one has failed with: the kernel tells of a lost page only once */
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
