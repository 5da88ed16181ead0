// Received buffers live outside the heap: V8 accounts for them late and then marks the whole heap, about every 30 MB.
// Code that has finished with a buffer therefore frees it explicitly.
import { MessageChannel } from 'node:worker_threads';

/** A buffer that is transferred to a closed port is freed with the message. */
const { port1: nowhere, port2 } = new MessageChannel();
port2.close();
nowhere.unref();

/** Frees the buffer: neither it nor any other view of its memory may be used afterwards. */
export function releaseMemory(piece: Buffer): void {
  // A slice of a larger buffer is not freed: other slices may be in use.
  if (piece.byteLength === piece.buffer.byteLength) nowhere.postMessage(null, [piece.buffer as ArrayBuffer]);
}
