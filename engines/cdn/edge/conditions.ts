// Conditions of visitors, held against a stored response.
import type { IncomingMessage } from 'node:http';
import { parseHttpDate } from '../../../core/protocols/http_date';
import type { HeaderFields } from './headers';

/**
 * If-None-Match before If-Modified-Since (RFC 9110 §13.2.2). A date that is none is ignored (§13.1.3), and so is one
 * where the response has no date of its own.
 */
export function isNotModified(
  { headers: asked }: IncomingMessage,
  { status, headers }: { status: number; headers: HeaderFields },
): boolean {
  if (status !== 200) return false;
  const etags = asked['if-none-match'];
  if (etags !== undefined) {
    const own = opaque(String(headers.etag ?? ''));
    return own !== '' && (etags.trim() === '*' || listed(etags).some((etag) => opaque(etag) === own));
  }
  return parseHttpDate(String(headers['last-modified'])) <= parseHttpDate(asked['if-modified-since']);
}

/**
 * If-Range needs the same strong validator (RFC 9110 §13.1.5): a weak entity tag never holds, and a date only where it
 * is that of the response.
 */
export function holdsIfRange(condition: string | undefined, headers: HeaderFields): boolean {
  if (condition === undefined) return true;
  if (condition.startsWith('W/')) return false;
  return condition === headers.etag || condition === headers['last-modified'];
}

/** Commas may be a part of an entity tag. Some clients and origins leave its quotes out. */
function listed(etags: string): string[] {
  return etags.match(/(?:W\/)?"[^"]*"|[^\s,]+/g) ?? [];
}

function opaque(etag: string): string {
  return etag.trim().replace(/^W\//, '');
}
