// Heads and small responses are written when all that came at once has been read. A write wakes who waits for it: those
// that follow at once find the same program awake, which costs the kernel, and so the ingress, less.
import type { Socket } from 'node:net';

interface DeferredWrite {
  socket: Socket;
  text: string;
  done: ((error?: Error | null) => void) | undefined;
}

/** So that the first does not wait for long. */
const WRITES_MAX = 32;

let deferred: DeferredWrite[] = [];

/** Bytes in latin1. Nothing else may be written to the socket until they are. */
export function deferWrite(socket: Socket, text: string, done?: DeferredWrite['done']): void {
  const count = deferred.push({ socket, text, done });
  if (count === 1) setImmediate(writeDeferred);
  else if (count === WRITES_MAX) writeDeferred();
}

/** Before something that ends a socket which may have one. */
export function writeDeferred(): void {
  const all = deferred;
  if (all.length === 0) return;
  deferred = [];
  for (const { socket, text, done } of all) if (!socket.destroyed) socket.write(text, 'latin1', done);
}
