// Requests that tried a token or code which does not exist: they count against their address.
import type { IncomingMessage } from 'node:http';

const guesses = new WeakSet<IncomingMessage>();

export function noteGuess(request: IncomingMessage): void {
  guesses.add(request);
}

export function wasGuess(request: IncomingMessage): boolean {
  return guesses.has(request);
}
