import { problem, type Problem } from '../core/errors';

/** The token of an Authorization header, null where it holds none (RFC 6750 section 2.1; the scheme's case does not matter, RFC 9110 section 11.1). */
export function bearerToken(header: string | undefined): string | null {
  return /^bearer +([\x21-\x7e]+) *$/i.exec(header ?? '')?.[1] ?? null;
}

/** token_missing with WWW-Authenticate. */
export function tokenMissing(): Problem {
  return problem('token_missing', undefined, {}, { 'WWW-Authenticate': 'Bearer realm="platform"' });
}
