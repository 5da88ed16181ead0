// Connections handed over from the primary process to a web process. Node's round robin keeps one at a time for each
// web process until it is accepted or sent back. If neither happens, the client would wait as long as the primary
// lives.
import type { Worker } from 'node:cluster';

/**
 * Closes the connection that was handed over last when the process exits, and whenever the returned function is called:
 * when a process stops, connections that it sends back are lost once the last process has closed the port. Accepted
 * connections are not affected: the process has its own descriptor for them.
 */
export function watchHandover({ process: child }: Worker): () => void {
  let handed: { close?(): void } | undefined;
  const send = child.send.bind(child) as (message: unknown, handle?: unknown, ...more: unknown[]) => boolean;
  child.send = (message: unknown, handle?: unknown, ...more: unknown[]): boolean => {
    if (handle) handed = handle as { close?(): void };
    return send(message, handle, ...more);
  };
  const close = (): void => handed?.close?.();
  child.once('exit', close);
  return close;
}
