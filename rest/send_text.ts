// How a text leaves: in one piece, with its length, together with what else is ready.
import type { ServerResponse } from 'node:http';

/** On every answer: no browser may guess another type than the one that is sent. */
export const NOSNIFF = { 'X-Content-Type-Options': 'nosniff' } as const;

const COPIED_BYTES_MAX = 4 << 10;

/**
 * Writes status, headers with the length, and the text; HEAD gets no text. Responses of one turn of the event loop are
 * flushed together at its end: a write between two requests would wake a waiting reader on this machine (a proxy, a
 * load balancer), which is half of the cost of a rejected request.
 */
export function sendText(
  response: ServerResponse,
  status: number,
  headers: Record<string, string | string[] | number>,
  text: string,
  isHead: boolean,
): void {
  const bytes = Buffer.byteLength(text);
  headers['Content-Length'] = bytes;
  headers['X-Content-Type-Options'] = 'nosniff';
  response.writeHead(status, headers);
  // A byte for each letter: it is all ASCII, and need not be encoded as UTF-8 once more.
  const encoding = bytes === text.length ? 'latin1' : 'utf8';
  // Node puts a text behind its headers, which copies a large one twice more.
  const body = bytes > COPIED_BYTES_MAX ? Buffer.from(text, encoding) : text;
  setImmediate(() => (isHead ? response.end() : response.end(body, encoding)));
}
