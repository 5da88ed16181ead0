// Blocks of the latest received bytes, shared by all readers of a flight, and blocks read from its file on demand.

export interface Blocks {
  append(bytes: Buffer): void;
  /** The bytes in memory from `position` up to `written`; null where they are no longer in memory. */
  find(position: number, written: number): Buffer | null;
  /** Reads the block from the file. */
  read(position: number, written: number): Promise<Buffer>;
}

export const BLOCK_BYTES = 64 * 1024;
const LATEST = 8;
const READ_AGAIN = 8;

/** @param announced total number of bytes, where it is known */
export function openBlocks(
  announced: number | null,
  readFile: (position: number, length: number) => Promise<Buffer>,
): Blocks {
  const latest = new Map<number, Buffer>();
  const reads = new Map<number, Promise<Buffer>>();
  let length = 0;
  const find = (position: number, written: number): Buffer | null => {
    const index = Math.floor(position / BLOCK_BYTES);
    const block = position < written ? latest.get(index) : undefined;
    return block?.subarray(position % BLOCK_BYTES, written - index * BLOCK_BYTES) ?? null;
  };
  return {
    find,
    append(bytes) {
      for (let copied = 0; copied < bytes.length;) {
        const block = blockFor(latest, Math.floor(length / BLOCK_BYTES), announced);
        const count = bytes.copy(block, length % BLOCK_BYTES, copied);
        if (!count) throw new Error('more bytes than were announced');
        copied += count;
        length += count;
      }
    },
    async read(position, written) {
      const held = find(position, written);
      if (held) return held;
      const begin = position - (position % BLOCK_BYTES);
      const known = reads.get(begin) ?? readFile(begin, Math.min(BLOCK_BYTES, written - begin));
      if (!reads.has(begin)) remember(reads, begin, known);
      return (await known).subarray(position - begin);
    },
  };
}

function blockFor(latest: Map<number, Buffer>, index: number, announced: number | null): Buffer {
  const known = latest.get(index);
  if (known) return known;
  const left = announced === null ? 0 : announced - index * BLOCK_BYTES;
  const made = Buffer.allocUnsafeSlow(left > 0 ? Math.min(BLOCK_BYTES, left) : BLOCK_BYTES);
  latest.set(index, made);
  latest.delete(index - LATEST);
  return made;
}

/** Readers at the same position share one read of the file. */
function remember(reads: Map<number, Promise<Buffer>>, begin: number, read: Promise<Buffer>): void {
  reads.set(begin, read);
  read.catch(() => reads.delete(begin));
  const [oldest] = reads.keys();
  if (reads.size > READ_AGAIN && oldest !== undefined) reads.delete(oldest);
}
