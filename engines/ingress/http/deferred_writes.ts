// Response heads and small responses are written after all pending reads of the event loop turn. Every write wakes the
// receiving program: writes that follow each other find it awake, which costs less kernel time.
import type { Socket } from 'node:net';

interface DeferredWrite {
  socket: Socket;
  text: string;
  done: ((error?: Error | null) => void) | undefined;
}

/** Bounds the delay of the first write. */
const WRITES_MAX = 32;

let deferred: DeferredWrite[] = [];

/** `text` is latin1. Nothing else may be written to the socket until the deferred write is done. */
export function deferWrite(socket: Socket, text: string, done?: DeferredWrite['done']): void {
  const count = deferred.push({ socket, text, done });
  if (count === 1) setImmediate(writeDeferred);
  else if (count === WRITES_MAX) writeDeferred();
}

/** To be called before a socket with a deferred write is ended. */
export function writeDeferred(): void {
  const all = deferred;
  if (all.length === 0) return;
  deferred = [];
  for (const { socket, text, done } of all) if (!socket.destroyed) socket.write(text, 'latin1', done);
}
