// Bytes on their way into a file of the cache, read by everybody who asked for them meanwhile: the body of a response,
// or a compressed form of one. Readers follow behind, each at its own pace. The latest blocks are in memory, for all
// readers together; who is further behind reads from the file.
import { Readable } from 'node:stream';
import type { ByteRange } from '../../../core/protocols/byte_range';
import { BLOCK_BYTES, openBlocks, type Blocks } from './blocks';
import type { NewFile } from './new_file';
import type { StoredObject } from './store';

export interface Flight {
  /** Of the file. */
  readonly id: string;
  /** Resolves at the end of the bytes. Never rejects. */
  readonly ended: Promise<void>;
  /** The object, when it can be found; null where it is not kept. Never rejects. */
  readonly stored: Promise<StoredObject | null>;
  /** From the beginning, or a part. It fails where the source breaks off. */
  read(range?: ByteRange | null): Readable;
  /** All of it, of what fits into a block. Rejects where the source breaks off. */
  whole(): Promise<Buffer>;
  /** What comes was purged meanwhile: it is not kept. */
  cancelStoring(): void;
}

interface FlightOptions {
  /** Bytes that the source has promised; null: not known. */
  announced: number | null;
  /** What grows beyond it is passed on but not kept. */
  sizeMax: number;
  /** Called when the source has ended: whether it had come to its end. */
  isWhole(): boolean;
  /** It has grown beyond sizeMax: nobody else should join. */
  onTooLarge(): void;
}

/** Several blocks, and a chunk. */
const RING_BYTES_MIN = 1024 * 1024;

interface State {
  file: NewFile;
  /** Bytes of the file. */
  ring: number;
  blocks: Blocks;
  received: number;
  /** What readers may have. */
  written: number;
  done: boolean;
  error: Error | null;
  keeps: boolean;
  readers: Set<Reader>;
  /** Resolves when there is more, for all who wait: of 50,000 readers each costs a callback. */
  progress: Signal;
  /** While the source waits: resolves when a reader has gone on or away. */
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
      // The last bytes come when the object can be found: who has read them finds it.
      if (state.received === announced) continue;
      state.written = state.received;
      notifyReaders(state);
    }
    if (!options.isWhole() || (announced !== null && announced !== state.received))
      throw new Error('the origin broke off');
    // All has come: a file that can't be kept costs no visitor the end of the answer.
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

/** What is too large to be kept goes round in the file: its readers are waited for. */
async function take(state: State, bytes: Buffer, { sizeMax, onTooLarge }: FlightOptions): Promise<void> {
  const { file, blocks, ring } = state;
  const end = state.received + bytes.length;
  if (end > sizeMax && state.received <= sizeMax) {
    state.keeps = false;
    onTooLarge();
  }
  while (end > ring && end - slowestOf(state) > ring) {
    if (!state.readers.size) throw new Error('nobody reads it any more');
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

/** Where the block of the slowest reader begins. */
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
