// What the ingress of this installation answers to prove that a name leads to it: a keyed digest of the token, at the
// path of ACME challenges, which is served for every host name over plain HTTP. It needs no row, and says nothing.
import type { SecretBox } from '../../core/secrets';

export const PROOF_PATH = '/.well-known/acme-challenge/';
const PREFIX = 'platform-setup-';
const PURPOSE = 'setup proof';
const TOKEN = /^platform-setup-[\w-]{16,64}$/;

/** @param nonce base64url, at least 16 characters */
export function proofToken(nonce: string): string {
  return PREFIX + nonce;
}

/** null for a token that is none of these. */
export function proofOf(secrets: SecretBox, token: string): string | null {
  return TOKEN.test(token) ? secrets.hmac(token, PURPOSE) : null;
}
