// Addresses from which a backup can be downloaded without a key for a while: the time and the backup are signed.
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Config } from '../../../core/config';
import type { Sql } from '../../../core/context';
import { problem } from '../../../core/errors';
import { isId } from '../../../core/ids';
import { limits } from '../../../core/limits';
import type { SecretBox } from '../../../core/secrets';
import { named } from '../../../db/statement';

/** Below the address of the API, beside /v2. */
export const DOWNLOAD_PATH = '/downloads/backups/';

/** The address, and when it stops working. */
export function downloadAddress(
  { config, secrets }: { config: Config; secrets: SecretBox },
  id: string,
): { url: string; expires_at: string } {
  // Whole seconds, as the address has them.
  const expires = Math.floor(Date.now() / 1000) + limits.backupDownloadSeconds;
  const query = new URLSearchParams({
    expires: String(expires),
    signature: sign(secrets, id, expires).toString('base64url'),
  });
  return { url: `${config.baseUrl}${DOWNLOAD_PATH}${id}?${query}`, expires_at: new Date(expires * 1000).toISOString() };
}

export interface DownloadableBackup {
  id: string;
  engine: string;
  /** Server that it is of. */
  server_id: string;
}

const FIND = named(`select b.id, d.engine, d.server_id from database_backups b join databases d on d.id = b.database_id
  where b.id = $1 and b.status = 'completed' and b.deleted_at is null and d.deleted_at is null`);

/** The backup that an address leads to. @throws not_found where it is altered or too old, or the backup is gone */
export async function signedBackup(
  sql: Sql,
  secrets: SecretBox,
  { id, expires, signature }: { id: string; expires: string; signature: string },
): Promise<DownloadableBackup> {
  const [found] =
    isSigned(secrets, id, expires, signature) && Number(expires) * 1000 > Date.now()
      ? await sql.query<DownloadableBackup>(FIND, [id])
      : [];
  if (!found)
    throw problem(
      'not_found',
      'The download address has expired or was altered, or its backup was deleted. Request a new address.',
    );
  return found;
}

function isSigned(secrets: SecretBox, id: string, expires: string, signature: string): boolean {
  if (!isId('bkp', id) || !/^\d{1,12}$/.test(expires)) return false;
  const wanted = sign(secrets, id, Number(expires));
  const given = Buffer.from(signature, 'base64url');
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

function sign(secrets: SecretBox, id: string, expires: number): Buffer {
  return createHmac('sha256', secrets.subKey('backup downloads')).update(`${id}\n${expires}`).digest();
}
