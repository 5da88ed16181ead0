// Sends a range of a file to a client. Buffers are pooled: external memory of new buffers is invisible to V8, which
// would collect garbage for every 64 MB sent.
import type { ServerResponse } from 'node:http';
import type { OpenFile } from './open_files';

/** Up to this size a response is one buffer and one write, without waiting for the client. */
const SMALL_BYTES = 64 * 1024;
/** The next piece is read while the previous one is being sent. */
const PIECE_BYTES = 1024 * 1024;
/** Size of the pool: 32 MB while sending, and a quarter of it when idle. */
const FREE_MAX = 32;
const FREE_IDLE = FREE_MAX / 4;
const IDLE_MS = 10_000;

const free: Buffer[] = [];
let timer: NodeJS.Timeout | null = null;

/**
 * Sends the bytes from `start` to `end`, and leaves the file open. A client that has disconnected is not an error.
 * @param then whether the response ends after them
 * @throws Error of the file
 */
export async function sendFile(
  response: ServerResponse,
  file: OpenFile,
  { start, end }: { start: number; end: number },
  then: 'end' | 'more',
): Promise<void> {
  if (then === 'end' && end - start <= SMALL_BYTES) return void response.end(await readWhole(file, start, end - start));
  let sent: Promise<Buffer | null> = Promise.resolve(null);
  let spare: Buffer | null = null;
  for (let offset = start; offset < end && !response.destroyed;) {
    const buffer: Buffer = spare ?? free.pop() ?? Buffer.allocUnsafeSlow(PIECE_BYTES);
    const length = await file.read(buffer, Math.min(PIECE_BYTES, end - offset), offset);
    offset += length;
    // The previous buffer is free again, or lost with its client.
    spare = await sent;
    sent = write(response, buffer, length, offset === end ? then : 'more');
  }
  keep(spare);
  keep(await sent);
}

async function readWhole(file: OpenFile, start: number, size: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(size);
  for (let read = 0; read < size;) read += await file.read(buffer.subarray(read), size - read, start + read);
  return buffer;
}

/** Resolves with the buffer once it is sent; with null where that will never be known. */
function write(response: ServerResponse, buffer: Buffer, length: number, then: 'end' | 'more'): Promise<Buffer | null> {
  if (response.destroyed) return Promise.resolve(null);
  return new Promise((resolve) => {
    const gone = (): void => resolve(null);
    response.once('close', gone);
    const piece = length === buffer.length ? buffer : buffer.subarray(0, length);
    const done = (error?: Error | null): void => {
      response.off('close', gone);
      resolve(error ? null : buffer);
    };
    if (then === 'end') response.end(piece, done);
    else response.write(piece, done);
  });
}

function keep(buffer: Buffer | null): void {
  if (buffer && free.length < FREE_MAX) free.push(buffer);
  timer ??= setTimeout(() => {
    timer = null;
    free.splice(FREE_IDLE);
  }, IDLE_MS).unref();
}
