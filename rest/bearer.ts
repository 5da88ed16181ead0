import { problem, type Problem } from '../core/errors';

/**
 * The token of an Authorization header (RFC 6750 section 2.1; the scheme's case does not matter, RFC 9110 section 11.1).
 * @throws token_missing with WWW-Authenticate
 */
export function bearerToken(header: string | undefined): string {
  const token = /^bearer +([\x21-\x7e]+) *$/i.exec(header ?? '')?.[1];
  if (!token) throw tokenMissing();
  return token;
}

export function tokenMissing(): Problem {
  return problem('token_missing', undefined, {}, { 'WWW-Authenticate': 'Bearer realm="platform"' });
}
