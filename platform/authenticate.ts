import type { Identity } from '../core/context';
import { Problem, problem } from '../core/errors';
import type { Platform } from './platform';

/**
 * Who an Authorization header says is calling, or what refuses the caller: token_missing, token_invalid, token_expired,
 * rate_limited. Failures are counted per address: beyond the limit a wrong token meets 429, while right ones from the same
 * address (an office, a CI provider) go on working. It answers at once unless the database must be asked.
 */
export function authenticate(
  platform: Platform,
  header: string | undefined,
  address: string,
): Identity | Problem | Promise<Identity | Problem> {
  const token = bearerToken(header);
  if (token === null) return problem('token_missing', undefined, {}, { 'WWW-Authenticate': 'Bearer realm="platform"' });
  const found = platform.identities.ofToken(token);
  return found instanceof Promise
    ? found.then((late) => countFailure(platform, late, address))
    : countFailure(platform, found, address);
}

/** RFC 6750 section 2.1; the scheme's case does not matter (RFC 9110 section 11.1). */
function bearerToken(header: string | undefined): string | null {
  return /^bearer +([\x21-\x7e]+) *$/i.exec(header ?? '')?.[1] ?? null;
}

function countFailure({ attempts }: Platform, found: Identity | Problem, address: string): Identity | Problem {
  if (!(found instanceof Problem)) return found;
  const refusal = attempts.refusal(address);
  if (!refusal) attempts.count(address);
  return refusal ?? found;
}
