// One response on its way from the origin into the cache, read by everybody who asked for it meanwhile. The bytes go to
// the file of the object; readers follow behind, each at its own pace, so that nothing is held in memory.
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { NewObject } from './store';

export interface Flight {
  /** Resolves at the end of the body. Never rejects. */
  readonly ended: Promise<void>;
  /** The body from its beginning. It fails where the origin breaks off. */
  read(): Readable;
  /** The object was purged meanwhile: it is not kept. */
  cancelStoring(): void;
}

const READ_BYTES = 64 * 1024;
const HELD_BYTES = 1024 * 1024;

interface State {
  written: number;
  done: boolean;
  error: Error | null;
  keeps: boolean;
  readers: number;
  /** The body so far, while it is small: its readers need no file. Null beyond HELD_BYTES. */
  held: Buffer[] | null;
  heldBytes: number;
  /** Resolves when there is more, for all who wait: of 50,000 readers each costs a callback. */
  progress: Promise<void>;
  wake(): void;
}

/** @param sizeMax a body that grows beyond it is passed on but not kept */
export function startFlight(response: IncomingMessage, object: NewObject, sizeMax: number): Flight {
  const state: State = {
    ...{ written: 0, done: false, error: null, keeps: true, readers: 0, held: [], heldBytes: 0 },
    ...{ progress: Promise.resolve(), wake: () => undefined },
  };
  renewProgress(state);
  const ended = receive(response, object, state, sizeMax).finally(() => closeWhenUnread(object, state));
  return {
    ended,
    read: () => follow(object, state),
    cancelStoring: () => void (state.keeps = false),
  };
}

async function receive(response: IncomingMessage, object: NewObject, state: State, sizeMax: number): Promise<void> {
  const announced = Number(response.headers['content-length'] ?? NaN);
  let received = 0;
  try {
    for await (const chunk of response) {
      const bytes = chunk as Buffer;
      await object.handle.write(bytes, 0, bytes.length, object.start + received);
      hold(state, bytes);
      received += bytes.length;
      if (received > sizeMax) state.keeps = false;
      // The last bytes come when the object can be found: who has read them finds it.
      if (received === announced) continue;
      state.written = received;
      notifyReaders(state);
    }
    if (!response.complete || (!Number.isNaN(announced) && announced !== received))
      throw new Error('the origin broke off');
    if (state.keeps) await object.commit(received, () => state.keeps);
    else await object.discard();
    state.written = received;
  } catch (error) {
    state.error = error as Error;
    await object.discard().catch(() => undefined);
  } finally {
    state.done = true;
    notifyReaders(state);
  }
}

function renewProgress(state: State): void {
  state.progress = new Promise((resolve) => (state.wake = resolve));
}

function notifyReaders(state: State): void {
  const { wake } = state;
  renewProgress(state);
  wake();
}

function hold(state: State, bytes: Buffer): void {
  state.heldBytes += bytes.length;
  if (state.heldBytes > HELD_BYTES) state.held = null;
  state.held?.push(bytes);
}

function closeWhenUnread(object: NewObject, state: State): void {
  if (state.done && state.readers === 0) void object.handle.close().catch(() => undefined);
}

/** The chunk at a position, from there. */
function heldFrom(chunks: readonly Buffer[], position: number): Buffer | null {
  let begin = 0;
  for (const chunk of chunks) {
    if (position < begin + chunk.length) return chunk.subarray(position - begin);
    begin += chunk.length;
  }
  return null;
}

/** What there is at a position, from memory or from the file. */
async function chunkAt(object: NewObject, state: State, position: number): Promise<Buffer> {
  const there = state.written - position;
  const held = state.held && heldFrom(state.held, position)?.subarray(0, there);
  if (held) return held;
  const length = Math.min(READ_BYTES, there);
  const { bytesRead, buffer } = await object.handle.read(
    Buffer.allocUnsafe(length),
    0,
    length,
    object.start + position,
  );
  return buffer.subarray(0, bytesRead);
}

function follow(object: NewObject, state: State): Readable {
  let position = 0;
  let isOpen = true;
  state.readers += 1;
  const next = async (): Promise<Buffer | null> => {
    while (position >= state.written) {
      if (state.error) throw state.error;
      if (state.done || !isOpen) return null;
      await state.progress;
    }
    const chunk = await chunkAt(object, state, position);
    position += chunk.length;
    return chunk;
  };
  return new Readable({
    highWaterMark: READ_BYTES,
    read() {
      next().then(
        (chunk) => this.push(chunk),
        (error: Error) => this.destroy(error),
      );
    },
    destroy(error, done) {
      isOpen = false;
      state.readers -= 1;
      closeWhenUnread(object, state);
      done(error);
    },
  });
}
