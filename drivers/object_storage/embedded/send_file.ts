// A range of a file on its way to a client. Buffers are used again: new ones for each piece are memory that V8 does not
// see, which makes it collect garbage for every 64 MB that are sent.
import type { FileHandle } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';

/** A file up to this size is read at once, a larger one in pieces while the one before is on its way. */
const WHOLE_BYTES = 2 ** 20;
const PIECE_BYTES = WHOLE_BYTES / 2;
/** Kept for the next ones: 16 MB. */
const FREE_MAX = 32;

const free: Buffer[] = [];

/** Sends the bytes and leaves the file open. A client that has gone is no error. @throws Error of the file */
export async function sendFile(
  response: ServerResponse,
  handle: FileHandle,
  start: number,
  end: number,
): Promise<void> {
  const size = end - start <= WHOLE_BYTES ? end - start : PIECE_BYTES;
  const take = (): Buffer =>
    size === PIECE_BYTES ? (free.pop() ?? Buffer.allocUnsafeSlow(size)) : Buffer.allocUnsafe(size);
  let sent: Promise<Buffer | null> = Promise.resolve(null);
  let spare: Buffer | null = null;
  for (let offset = start; offset < end && !response.destroyed;) {
    const buffer: Buffer = spare ?? take();
    const length = await fill(handle, buffer, offset, Math.min(size, end - offset));
    offset += length;
    // The one before is free again, or lost with its client.
    spare = await sent;
    sent = write(response, buffer, length);
  }
  for (const buffer of [spare, await sent])
    if (buffer?.length === PIECE_BYTES && free.length < FREE_MAX) free.push(buffer);
}

/** @throws Error where the file is shorter */
async function fill(handle: FileHandle, buffer: Buffer, offset: number, length: number): Promise<number> {
  const { bytesRead } = await handle.read(buffer, 0, length, offset);
  if (bytesRead === 0) throw new Error('a file of an object is shorter than its row says');
  return bytesRead;
}

/** Resolves with the buffer when it has been sent; with null where that will never be known. */
function write(response: ServerResponse, buffer: Buffer, length: number): Promise<Buffer | null> {
  return new Promise((resolve) => {
    const gone = (): void => resolve(null);
    response.once('close', gone);
    response.write(length === buffer.length ? buffer : buffer.subarray(0, length), (error) => {
      response.off('close', gone);
      resolve(error ? null : buffer);
    });
  });
}
