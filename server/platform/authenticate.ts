import type { Identity } from '../../core/context';
import { Problem, problem } from '../../core/errors';
import type { Platform } from './platform';
import { addressBlock } from '../../core/protocols/addresses';

/**
 * The identity of an Authorization header. Failures are counted per address: beyond the limit a wrong token meets 429,
 * while right ones from the same address (an office, a CI provider) go on working.
 * @throws token_missing, token_invalid, token_expired, rate_limited
 */
export async function authenticate(
  { identities, attempts }: Platform,
  header: string | undefined,
  address: string,
): Promise<Identity> {
  const token = bearerToken(header);
  if (token === null) throw problem('token_missing', undefined, {}, { 'WWW-Authenticate': 'Bearer realm="platform"' });
  try {
    return await identities.ofToken(token);
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
    const block = addressBlock(address);
    const refusal = attempts.refusal(block);
    if (!refusal) attempts.count(block);
    throw refusal ?? error;
  }
}

/** RFC 6750 section 2.1; the scheme's case does not matter (RFC 9110 section 11.1). */
function bearerToken(header: string | undefined): string | null {
  return /^bearer +([\x21-\x7e]+) *$/i.exec(header ?? '')?.[1] ?? null;
}
