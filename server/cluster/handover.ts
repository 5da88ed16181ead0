// Connections on their way from the first process to one that serves. Node's round robin keeps one at a time for each
// of them until it is taken or sent back. Where neither comes, the client would wait as long as the first process
// lives.
import type { Worker } from 'node:cluster';

/**
 * Closes the connection that was handed over last when the process ends, and whenever the answer is called: for a
 * process that stops, since what it sends back after the last one has closed the port goes nowhere. What was taken is
 * not touched: the process has it by a descriptor of its own.
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
