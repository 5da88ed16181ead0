// Each backup is encrypted with a passphrase of its own, which is sealed in its row: a rotation of the secret key
// changes no archive.
import { randomBytes } from 'node:crypto';
import type { SecretBox } from '../../../core/secrets';
import { sealedColumns } from '../../base/sealed_columns';

const PASSPHRASE_BYTES = 32;

/** What a new backup is encrypted with. */
export function sealedPassphrase(secrets: SecretBox, id: string): string {
  const passphrase = randomBytes(PASSPHRASE_BYTES).toString('base64url');
  return secrets.seal(passphrase, sealedColumns.volumeBackupPassphrase.contextOf(id));
}

/** @throws Error where no key of PLATFORM_SECRET_KEY opens it */
export function openPassphrase(secrets: SecretBox, { id, passphrase }: { id: string; passphrase: string }): string {
  return secrets.open(passphrase, sealedColumns.volumeBackupPassphrase.contextOf(id));
}
