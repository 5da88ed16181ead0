// The encrypted secret of an access key.
import type { SecretBox } from '../../../core/secrets';
import { sealedColumns } from '../../base/sealed_columns';

export function sealSecret(secrets: SecretBox, id: string, secret: string): string {
  return secrets.seal(secret, sealedColumns.bucketAccessKey.contextOf(id));
}

export function openSecret(secrets: SecretBox, { id, sealed_secret }: { id: string; sealed_secret: string }): string {
  return secrets.open(sealed_secret, sealedColumns.bucketAccessKey.contextOf(id));
}
