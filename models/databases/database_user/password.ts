// How passwords of database users stand in their rows.
import type { SecretBox } from '../../../core/secrets';

/** The password of a user in plain, for those who have the row. */
export function openPassword(secrets: SecretBox, user: { id: string; password: string }): string {
  return secrets.open(user.password, sealContextOf(user.id));
}

/** The other way round; a password can be opened for the user of that id only. */
export function sealPassword(secrets: SecretBox, id: string, password: string): string {
  return secrets.seal(password, sealContextOf(id));
}

/** Binds a sealed password to its user: copied into another row it can't be opened. */
function sealContextOf(id: string): string {
  return `database_users:${id}`;
}
