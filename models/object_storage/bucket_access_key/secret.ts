// The secret of an access key at rest.
import type { SecretBox } from '../../../core/secrets';

export function sealSecret(secrets: SecretBox, id: string, secret: string): string {
  return secrets.seal(secret, contextOf(id));
}

export function openSecret(secrets: SecretBox, { id, sealed_secret }: { id: string; sealed_secret: string }): string {
  return secrets.open(sealed_secret, contextOf(id));
}

function contextOf(id: string): string {
  return `bucket_access_keys:${id}:secret`;
}
