// Conditional requests of visitors, evaluated against a stored response.
import type { IncomingMessage } from 'node:http';
import { parseHttpDate } from '../../../core/protocols/http_date';
import type { HeaderFields } from './headers';

/**
 * If-None-Match takes precedence over If-Modified-Since (RFC 9110 §13.2.2). An invalid date is ignored (§13.1.3), and
 * so is any date where the response has no Last-Modified.
 */
export function isNotModified(
  { headers: requestHeaders }: IncomingMessage,
  { status, headers }: { status: number; headers: HeaderFields },
): boolean {
  if (status !== 200) return false;
  const etags = requestHeaders['if-none-match'];
  if (etags !== undefined) {
    const own = opaque(String(headers.etag ?? ''));
    return own !== '' && (etags.trim() === '*' || listed(etags).some((etag) => opaque(etag) === own));
  }
  return parseHttpDate(String(headers['last-modified'])) <= parseHttpDate(requestHeaders['if-modified-since']);
}

/**
 * If-Range needs a strong validator (RFC 9110 §13.1.5): a weak entity tag never matches, and a date must equal the
 * Last-Modified of the response.
 */
export function holdsIfRange(condition: string | undefined, headers: HeaderFields): boolean {
  if (condition === undefined) return true;
  if (condition.startsWith('W/')) return false;
  return condition === headers.etag || condition === headers['last-modified'];
}

/** Entity tags may contain commas. Some clients and origins omit the quotes. */
function listed(etags: string): string[] {
  return etags.match(/(?:W\/)?"[^"]*"|[^\s,]+/g) ?? [];
}

function opaque(etag: string): string {
  return etag.trim().replace(/^W\//, '');
}
