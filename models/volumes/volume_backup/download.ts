// Addresses from which a backup of a volume can be downloaded without a key for a while.
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
import { openPassphrase } from './passphrase';

/** Below the address of the API, beside /v2. */
export const VOLUME_DOWNLOAD_PATH = '/downloads/volume_backups/';

const DOWNLOADS: SignedDownloads = {
  path: VOLUME_DOWNLOAD_PATH,
  idPrefix: 'vbk',
  purpose: 'volume backup downloads',
};

/** The address, and when it stops working. */
export function volumeDownloadAddress(
  ctx: { config: Config; secrets: SecretBox },
  id: string,
): { url: string; expires_at: string } {
  return downloadAddressOf(DOWNLOADS, ctx, id);
}

export interface DownloadableVolumeBackup {
  id: string;
  volume_id: string;
  name: string;
  created_at: string;
  size_bytes: number;
  passphrase: string;
}

const FIND = named(`select b.id, b.volume_id, b.created_at, b.size_bytes, b.passphrase, v.name
  from volume_backups b join volumes v on v.id = b.volume_id
  where b.id = $1 and b.status = 'completed' and b.deleted_at is null and v.deleted_at is null`);

/** The backup that an address leads to. @throws not_found where it is altered or too old, or the backup is gone */
export async function signedVolumeBackup(
  sql: Sql,
  secrets: SecretBox,
  request: SignedRequest,
): Promise<DownloadableVolumeBackup> {
  const [found] = isSignedDownload(DOWNLOADS, secrets, request)
    ? await sql.query<DownloadableVolumeBackup>(FIND, [request.id])
    : [];
  if (!found) throw downloadNotFound();
  return { ...found, passphrase: openPassphrase(secrets, found) };
}
