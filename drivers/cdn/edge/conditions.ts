// Conditions of visitors, held against a stored response.
import type { IncomingMessage } from 'node:http';
import type { HeaderFields } from './headers';

/** RFC 9110 §13.2.2: If-None-Match before If-Modified-Since. */
export function isNotModified(
  { headers: asked }: IncomingMessage,
  { status, headers }: { status: number; headers: HeaderFields },
): boolean {
  if (status !== 200) return false;
  const etags = asked['if-none-match'];
  if (etags !== undefined) {
    const own = opaque(String(headers.etag ?? ''));
    return own !== '' && (etags.trim() === '*' || etags.split(',').some((etag) => opaque(etag) === own));
  }
  const [since, modified] = [asked['if-modified-since'], headers['last-modified']].map((text) =>
    Date.parse(String(text)),
  );
  return since !== undefined && modified !== undefined && modified <= since;
}

function opaque(etag: string): string {
  return etag.trim().replace(/^W\//, '');
}
