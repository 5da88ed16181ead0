// Addresses from which a backup can be downloaded without a key for a while.
import type { Config } from '../../../core/config';
import type { Sql } from '../../../core/context';
import type { SecretBox } from '../../../core/secrets';
import { named } from '../../../db/statement';
import {
  downloadAddressOf,
  downloadNotFound,
  isSignedDownload,
  type SignedDownloads,
  type SignedRequest,
} from '../../base/signed_download';

/** Below the address of the API, beside /v2. */
export const DOWNLOAD_PATH = '/downloads/backups/';

const DOWNLOADS: SignedDownloads = { path: DOWNLOAD_PATH, idPrefix: 'bkp', purpose: 'backup downloads' };

/** The address, and when it stops working. */
export function downloadAddress(
  ctx: { config: Config; secrets: SecretBox },
  id: string,
): { url: string; expires_at: string } {
  return downloadAddressOf(DOWNLOADS, ctx, id);
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
export async function signedBackup(sql: Sql, secrets: SecretBox, request: SignedRequest): Promise<DownloadableBackup> {
  const [found] = isSignedDownload(DOWNLOADS, secrets, request)
    ? await sql.query<DownloadableBackup>(FIND, [request.id])
    : [];
  if (!found) throw downloadNotFound();
  return found;
}
