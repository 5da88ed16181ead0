// Addresses from which a file can be downloaded without a key for a while: the time and its resource are signed.
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Config } from '../../core/config';
import { problem, type Problem } from '../../core/errors';
import { isId } from '../../core/ids';
import { limits } from '../../core/limits';
import type { SecretBox } from '../../core/secrets';

/** Downloads of a kind. */
export interface SignedDownloads {
  /** Below the address of the API, beside /v2, with a slash at its end. */
  path: string;
  idPrefix: string;
  /** What the key of the signatures is derived for. */
  purpose: string;
}

/** What an address has, as it came. */
export interface SignedRequest {
  id: string;
  expires: string;
  signature: string;
}

/** The address, and when it stops working. */
export function downloadAddressOf(
  downloads: SignedDownloads,
  { config, secrets }: { config: Config; secrets: SecretBox },
  id: string,
): { url: string; expires_at: string } {
  // Whole seconds, as the address has them.
  const expires = Math.floor(Date.now() / 1000) + limits.backupDownloadSeconds;
  const query = new URLSearchParams({
    expires: String(expires),
    signature: sign(downloads, secrets, id, expires).toString('base64url'),
  });
  return {
    url: `${config.baseUrl}${downloads.path}${id}?${query}`,
    expires_at: new Date(expires * 1000).toISOString(),
  };
}

/** Whether the address was given by this installation, and its time is not over. */
export function isSignedDownload(
  downloads: SignedDownloads,
  secrets: SecretBox,
  { id, expires, signature }: SignedRequest,
): boolean {
  if (!isId(downloads.idPrefix, id) || !/^\d{1,12}$/.test(expires)) return false;
  const expected = sign(downloads, secrets, id, Number(expires));
  const given = Buffer.from(signature, 'base64url');
  const isSame = given.length === expected.length && timingSafeEqual(given, expected);
  return isSame && Number(expires) * 1000 > Date.now();
}

export function downloadNotFound(): Problem {
  return problem(
    'not_found',
    'The download address has expired or was altered, or its backup was deleted. Request a new address.',
  );
}

function sign({ purpose }: SignedDownloads, secrets: SecretBox, id: string, expires: number): Buffer {
  return createHmac('sha256', secrets.subKey(purpose)).update(`${id}\n${expires}`).digest();
}
