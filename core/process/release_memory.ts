// The memory of a piece that was received is outside of the heap: V8 learns of it late and then marks the whole heap,
// for every 30 MB or so. Whoever is done with a piece gives it back at once.
import { MessageChannel } from 'node:worker_threads';

/** What is sent where nobody listens is freed with its message. */
const { port1: nowhere, port2 } = new MessageChannel();
port2.close();
nowhere.unref();

/** Nobody may use the piece, or another view of its memory, from now on. */
export function releaseMemory(piece: Buffer): void {
  // A part of something larger is not ours to free.
  if (piece.byteLength === piece.buffer.byteLength) nowhere.postMessage(null, [piece.buffer as ArrayBuffer]);
}
