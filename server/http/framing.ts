// Requests whose recipients could disagree on where they go or where they end. Node takes them; a server in front of
// this one might read them differently.
import type { IncomingMessage } from 'node:http';

/** Why a request is refused before anything else, null for a sound one. */
export function framingError({ headers, rawHeaders, httpVersion }: IncomingMessage): string | null {
  if (!headers.host && httpVersion === '1.1') return 'The header Host is missing.';
  // RFC 9112 section 3.2. Node keeps the first one only.
  if (countOf(rawHeaders, 'host') > 1) return 'The header Host is given more than once.';
  const coding = headers['transfer-encoding'];
  if (coding === undefined) return null;
  // RFC 9112 section 6.1.
  if (httpVersion === '1.0') return 'Transfer-Encoding is not part of HTTP/1.0.';
  return coding.trim().toLowerCase() === 'chunked' ? null : 'Transfer-Encoding must be chunked, without other codings.';
}

function countOf(rawHeaders: string[], name: string): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const raw = rawHeaders[at] as string;
    if (raw.length === name.length && raw.toLowerCase() === name) count += 1;
  }
  return count;
}
