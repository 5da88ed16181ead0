// Requests that tried a token or code which does not exist: they count against their address.
import type { IncomingMessage } from 'node:http';

const failed = new WeakSet<IncomingMessage>();

export function markFailedAttempt(request: IncomingMessage): void {
  failed.add(request);
}

export function isFailedAttempt(request: IncomingMessage): boolean {
  return failed.has(request);
}
