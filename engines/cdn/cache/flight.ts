// A flight: bytes that are being written to a file of the cache while any number of readers follow, each at its own
// pace. The source is the body of a response, or a compressed form of one. The latest blocks are in memory, shared by
// all readers; a reader further behind reads from the file.
import { Readable } from 'node:stream';
import type { ByteRange } from '../../../core/protocols/byte_range';
import { BLOCK_BYTES, openBlocks, type Blocks } from './blocks';
import type { NewFile } from './new_file';
import type { StoredObject } from './stored_object';

export interface Flight {
  /** Id of the file. */
  readonly id: string;
  /** Resolves at the end of the bytes. Never rejects. */
  readonly ended: Promise<void>;
  /** The object, once the index contains it; null where it is not stored. Never rejects. */
  readonly stored: Promise<StoredObject | null>;
  /** The whole body, or a range. The stream fails if the source fails. */
  read(range?: ByteRange | null): Readable;
  /** The whole body, for bodies of at most one block. Rejects if the source fails. */
  whole(): Promise<Buffer>;
  /** The object was purged in the meantime: it is not stored. */
  cancelStoring(): void;
}

interface FlightOptions {
  /** Content length that the source has announced; null: not known. */
  announced: number | null;
  /** A larger body is passed on, but not stored. */
  sizeMax: number;
  /** Called when the source has ended: whether the body is complete. */
  isWhole(): boolean;
  /** The body has exceeded `sizeMax`: no further reader should join. */
  onTooLarge(): void;
}

/** Several blocks and one chunk. */
const RING_BYTES_MIN = 1024 * 1024;

interface State {
  file: NewFile;
  /** Size of the file when it is used as a ring buffer. */
  ring: number;
  blocks: Blocks;
  received: number;
  /** Bytes that readers may read. */
  written: number;
  done: boolean;
  error: Error | null;
  keeps: boolean;
  readers: Set<Reader>;
  /** Resolves when more bytes have arrived, for all waiting readers: 50,000 readers cost one callback each. */
  progress: Signal;
  /** Set while the source is paused: resolves when a reader has advanced or left. */
  taken: Signal | null;
}

interface Reader {
  position: number;
}

interface Signal {
  promise: Promise<void>;
  notify(): void;
}

export function startFlight(source: Readable, file: NewFile, options: FlightOptions): Flight {
  const state: State = {
    ...{ file, ring: Math.max(options.sizeMax, RING_BYTES_MIN), received: 0, written: 0, done: false, error: null },
    ...{ keeps: true, readers: new Set(), progress: newSignal(), taken: null },
    blocks: openBlocks(options.announced, (position, length) => readFile(state, position, length)),
  };
  const stored = receive(source, state, options).finally(() => closeWhenUnread(state));
  return {
    id: file.id,
    stored,
    ended: stored.then(() => undefined),
    read: (range) => follow(state, range ?? { start: 0, end: Infinity }),
    async whole() {
      await stored;
      const content = state.blocks.find(0, state.written);
      if (state.error || !content) throw state.error ?? new Error('there is nothing');
      return content;
    },
    cancelStoring: () => void (state.keeps = false),
  };
}

async function receive(source: Readable, state: State, options: FlightOptions): Promise<StoredObject | null> {
  const { file } = state;
  const { announced } = options;
  try {
    for await (const chunk of source) {
      await take(state, chunk as Buffer, options);
      // The last bytes are released once the object is in the index: a visitor who has received them finds it there.
      if (state.received === announced) continue;
      state.written = state.received;
      notifyReaders(state);
    }
    if (!options.isWhole() || (announced !== null && announced !== state.received))
      throw new Error('the origin broke off');
    // The body is complete. Failure to store the file must not truncate the response of a visitor.
    const object = state.keeps ? await file.commit(state.received, () => state.keeps).catch(() => null) : null;
    if (!object) await file.discard().catch(() => undefined);
    state.written = state.received;
    return object;
  } catch (error) {
    state.error = error as Error;
    await file.discard().catch(() => undefined);
    return null;
  } finally {
    state.done = true;
    notifyReaders(state);
  }
}

/** A body too large to be stored uses the file as a ring buffer, and waits for its readers. */
async function take(state: State, bytes: Buffer, { sizeMax, onTooLarge }: FlightOptions): Promise<void> {
  const { file, blocks, ring } = state;
  const end = state.received + bytes.length;
  if (end > sizeMax && state.received <= sizeMax) {
    state.keeps = false;
    onTooLarge();
  }
  while (end > ring && end - slowestOf(state) > ring) {
    if (!state.readers.size) throw new Error('all readers have left');
    state.taken = newSignal();
    await state.taken.promise;
  }
  const at = state.received % ring;
  const first = bytes.subarray(0, ring - at);
  await file.write(first, at);
  if (first.length < bytes.length) await file.write(bytes.subarray(first.length), 0);
  blocks.append(bytes);
  state.received = end;
}

/** Start of the block of the slowest reader. */
function slowestOf({ readers }: State): number {
  let least = readers.size ? Infinity : 0;
  for (const { position } of readers) least = Math.min(least, position);
  return least - (least % BLOCK_BYTES);
}

async function readFile({ file, ring }: State, position: number, length: number): Promise<Buffer> {
  const at = position % ring;
  const first = await file.read(at, Math.min(length, ring - at));
  return first.length === length ? first : Buffer.concat([first, await file.read(0, length - first.length)]);
}

function closeWhenUnread({ file, done, readers }: State): void {
  if (done && readers.size === 0) void file.close().catch(() => undefined);
}

function follow(state: State, { start, end }: ByteRange): Readable {
  const reader: Reader = { position: start };
  let isOpen = true;
  state.readers.add(reader);
  const accept = (chunk: Buffer): Buffer => {
    const wanted = chunk.subarray(0, end + 1 - reader.position);
    reader.position += wanted.length;
    state.taken?.notify();
    return wanted;
  };
  const next = async (): Promise<Buffer | null> => {
    while (reader.position >= state.written && reader.position <= end) {
      if (state.error) throw state.error;
      if (state.done || !isOpen) return null;
      await state.progress.promise;
    }
    return reader.position > end ? null : accept(await state.blocks.read(reader.position, state.written));
  };
  return new Readable({
    read() {
      const held = reader.position <= end ? state.blocks.find(reader.position, state.written) : null;
      if (held) return void this.push(accept(held));
      next().then(
        (chunk) => this.push(chunk),
        (error: Error) => this.destroy(error),
      );
    },
    destroy(error, done) {
      isOpen = false;
      state.readers.delete(reader);
      state.taken?.notify();
      closeWhenUnread(state);
      done(error);
    },
  });
}

function newSignal(): Signal {
  let notify: () => void = () => undefined;
  const promise = new Promise<void>((resolve) => (notify = resolve));
  return { promise, notify };
}

function notifyReaders(state: State): void {
  const { notify } = state.progress;
  state.progress = newSignal();
  notify();
}
