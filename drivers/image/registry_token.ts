// The challenge of a registry and the request to its token server
// (distribution.github.io/distribution/spec/auth/token).
import { ImageError } from '../image';

/** The URL that issues a token; null if the challenge has no valid realm. */
export function requestToken(challenge: string, scope: string, base: URL): URL | null {
  const parameters = new Map(
    [...challenge.matchAll(/([a-z_]+)="([^"]*)"/gi)].map(([, name = '', value = '']) => [name.toLowerCase(), value]),
  );
  const realm = parameters.get('realm') ?? '';
  if (!URL.canParse(realm)) return null;
  const url = new URL(realm);
  const isSafe = url.protocol === 'https:' || (url.protocol === 'http:' && base.protocol === 'http:');
  if (!isSafe) return null;
  const service = parameters.get('service');
  if (service !== undefined) url.searchParams.set('service', service);
  url.searchParams.set('scope', scope);
  return url;
}

/** @throws ImageError where the text is no JSON object */
export function readJson(content: Buffer): Record<string, unknown> {
  try {
    const json = JSON.parse(content.toString('utf8')) as unknown;
    if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json as Record<string, unknown>;
  } catch {
    // Answered below.
  }
  throw new ImageError('broken', 'The registry sent a document that is not a JSON object.');
}
