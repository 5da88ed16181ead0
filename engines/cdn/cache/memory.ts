// Small bodies that were asked for lately, in memory. What was not asked for for longest goes first.
import { open } from 'node:fs/promises';

/** Bytes in a file: a body, or its compressed form. */
export interface StoredBytes {
  file: string;
  /** Where they begin in the file. */
  start: number;
  size: number;
}

export interface MemoryTier {
  /** Null where they are not held. */
  find(bytes: StoredBytes): Buffer | null;
  /** Small enough to be held. */
  fits(bytes: StoredBytes): boolean;
  /** Reads them once for all who ask meanwhile. @throws Error where the file is damaged */
  load(bytes: StoredBytes): Promise<Buffer>;
  forget(bytes: StoredBytes): void;
}

/** A visitor who reads slowly holds one. */
const BYTES_MAX_EACH = 1024 * 1024;
const SHARE_MAX = 1 / 32;
/** Of the entry itself. */
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
        // Not where it was removed meanwhile.
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
