// Small bodies in memory. Least recently used bodies are evicted first.
import { open } from 'node:fs/promises';

/** A range of a file: a body, or a compressed form of it. */
export interface StoredBytes {
  file: string;
  /** Offset in the file. */
  start: number;
  size: number;
}

export interface MemoryTier {
  /** Null where the body is not in memory. */
  find(bytes: StoredBytes): Buffer | null;
  /** Whether the body is small enough to be held in memory. */
  fits(bytes: StoredBytes): boolean;
  /** Reads the body from disk, once for concurrent callers. @throws Error where the file is damaged */
  load(bytes: StoredBytes): Promise<Buffer>;
  forget(bytes: StoredBytes): void;
}

/** Every slow visitor keeps one body in memory. */
const BYTES_MAX_EACH = 1024 * 1024;
const SHARE_MAX = 1 / 32;
/** Overhead per entry. */
const OVERHEAD_BYTES = 200;

export function openMemoryTier(bytesMax: number): MemoryTier {
  const held = new Map<StoredBytes, Buffer>();
  const loading = new Map<StoredBytes, Promise<Buffer>>();
  let used = 0;
  const forget = (bytes: StoredBytes): void => {
    if (held.delete(bytes)) used -= bytes.size + OVERHEAD_BYTES;
    loading.delete(bytes);
  };
  const hold = (bytes: StoredBytes, content: Buffer): void => {
    held.set(bytes, content);
    used += bytes.size + OVERHEAD_BYTES;
    for (const [oldest] of held) {
      if (used <= bytesMax) break;
      forget(oldest);
    }
  };
  return {
    find(bytes) {
      const content = held.get(bytes);
      if (!content) return null;
      held.delete(bytes);
      held.set(bytes, content);
      return content;
    },
    fits: ({ size }) => size <= BYTES_MAX_EACH && size <= bytesMax * SHARE_MAX,
    load(bytes) {
      const known = loading.get(bytes);
      if (known) return known;
      const reading = read(bytes).then((content) => {
        // Not if the object was removed during the read.
        if (loading.delete(bytes)) hold(bytes, content);
        return content;
      });
      loading.set(bytes, reading);
      void reading.catch(() => loading.delete(bytes));
      return reading;
    },
    forget,
  };
}

async function read({ file, start, size }: StoredBytes): Promise<Buffer> {
  const handle = await open(file, 'r');
  try {
    const content = Buffer.allocUnsafeSlow(size);
    const { bytesRead } = await handle.read(content, 0, size, start);
    if (bytesRead !== size) throw new Error('the file is damaged');
    return content;
  } finally {
    await handle.close();
  }
}
