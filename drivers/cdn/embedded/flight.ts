// One response on its way from the origin into the cache, read by everybody who asked for it meanwhile. The bytes go to
// the file of the object; readers follow behind, each at its own pace, so that nothing is held in memory.
import { EventEmitter, once } from 'node:events';
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

interface State {
  written: number;
  done: boolean;
  error: Error | null;
  keeps: boolean;
  readers: number;
  progress: EventEmitter;
}

/** @param sizeMax a body that grows beyond it is passed on but not kept */
export function startFlight(response: IncomingMessage, object: NewObject, sizeMax: number): Flight {
  const progress = new EventEmitter().setMaxListeners(0);
  const state: State = { written: 0, done: false, error: null, keeps: true, readers: 0, progress };
  const ended = receive(response, object, state, sizeMax).finally(() => closeWhenUnread(object, state));
  return {
    ended,
    read: () => follow(object, state),
    cancelStoring: () => void (state.keeps = false),
  };
}

async function receive(response: IncomingMessage, object: NewObject, state: State, sizeMax: number): Promise<void> {
  const announced = Number(response.headers['content-length'] ?? NaN);
  try {
    for await (const chunk of response) {
      const bytes = chunk as Buffer;
      await object.handle.write(bytes, 0, bytes.length, object.start + state.written);
      state.written += bytes.length;
      if (state.written > sizeMax) state.keeps = false;
      state.progress.emit('progress');
    }
    if (!response.complete || (!Number.isNaN(announced) && announced !== state.written))
      throw new Error('the origin broke off');
    if (state.keeps) await object.commit(state.written, () => state.keeps);
    else await object.discard();
  } catch (error) {
    state.error = error as Error;
    await object.discard().catch(() => undefined);
  } finally {
    state.done = true;
    state.progress.emit('progress');
  }
}

function closeWhenUnread(object: NewObject, state: State): void {
  if (state.done && state.readers === 0) void object.handle.close().catch(() => undefined);
}

function follow(object: NewObject, state: State): Readable {
  let position = 0;
  let isOpen = true;
  state.readers += 1;
  const next = async (): Promise<Buffer | null> => {
    while (position >= state.written) {
      if (state.error) throw state.error;
      if (state.done || !isOpen) return null;
      await once(state.progress, 'progress');
    }
    const length = Math.min(READ_BYTES, state.written - position);
    const { bytesRead, buffer } = await object.handle.read(
      Buffer.allocUnsafe(length),
      0,
      length,
      object.start + position,
    );
    position += bytesRead;
    return buffer.subarray(0, bytesRead);
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
