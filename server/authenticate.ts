import type { Identity } from '../core/context';
import { Problem } from '../core/errors';
import { bearerToken, tokenMissing } from '../rest/bearer';
import type { Platform } from './platform';

/**
 * Who an Authorization header says is calling, or what refuses the caller: token_missing, token_invalid, token_expired,
 * rate_limited. Failures are counted per address: beyond the limit a wrong token meets 429, while right ones from the same
 * address (an office, a CI provider) go on working. It answers at once unless the database must be asked.
 */
export function authenticate(platform: Platform, header: string | undefined, address: string): Identity | Problem | Promise<Identity | Problem> {
  const token = bearerToken(header);
  if (token === null) return tokenMissing();
  const found = platform.identities.ofToken(token);
  return found instanceof Promise ? found.then((late) => counted(platform, late, address)) : counted(platform, found, address);
}

function counted({ attempts }: Platform, found: Identity | Problem, address: string): Identity | Problem {
  if (!(found instanceof Problem)) return found;
  const refusal = attempts.refusal(address);
  if (!refusal) attempts.count(address);
  return refusal ?? found;
}
