// Addresses to which the file of an import can be sent without a key for a while: the time and the import are signed.
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Config } from '../../../core/config';
import { isId } from '../../../core/ids';
import type { SecretBox } from '../../../core/secrets';

/** Below the address of the API, beside /v2. */
export const IMPORT_UPLOAD_PATH = '/uploads/databases/';

/** @param expires seconds since the epoch */
export function importAddress(
  { config, secrets }: { config: Config; secrets: SecretBox },
  id: string,
  expires: number,
): string {
  const query = new URLSearchParams({
    expires: String(expires),
    signature: sign(secrets, id, expires).toString('base64url'),
  });
  return `${config.baseUrl}${IMPORT_UPLOAD_PATH}${id}?${query}`;
}

/** Whether the address is one of ours, unaltered, and has not expired. */
export function isImportAddress(
  secrets: SecretBox,
  { id, expires, signature }: { id: string; expires: string; signature: string },
): boolean {
  if (!isId('imp', id) || !/^\d{1,12}$/.test(expires) || Number(expires) * 1000 <= Date.now()) return false;
  const wanted = sign(secrets, id, Number(expires));
  const given = Buffer.from(signature, 'base64url');
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

function sign(secrets: SecretBox, id: string, expires: number): Buffer {
  return createHmac('sha256', secrets.subKey('database imports')).update(`${id}\n${expires}`).digest();
}
