import type { Identity } from '../core/context';
import { Problem } from '../core/errors';
import type { Platform } from './platform';

/**
 * The identity of a bearer token. Failures are counted per address: beyond the limit a wrong token meets 429, while
 * right ones from the same address (an office, a CI provider) go on working.
 * @throws token_invalid, token_expired, rate_limited
 */
export async function authenticate(platform: Platform, token: string, address: string): Promise<Identity> {
  try {
    return await platform.identities.ofToken(token);
  } catch (error) {
    if (error instanceof Problem && error.status === 401) {
      platform.attempts.require(address);
      platform.attempts.count(address);
    }
    throw error;
  }
}
