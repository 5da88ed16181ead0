// The encrypted passwords of database users in their rows.
import type { SecretBox } from '../../../core/secrets';
import { sealedColumns } from '../../base/sealed_columns';

/** The password of a user in plain, for those who have the row. */
export function openPassword(secrets: SecretBox, user: { id: string; password: string }): string {
  return secrets.open(user.password, sealedColumns.databaseUserPassword.contextOf(user.id));
}

/** The other way round; a password can be opened for the user of that id only. */
export function sealPassword(secrets: SecretBox, id: string, password: string): string {
  return secrets.seal(password, sealedColumns.databaseUserPassword.contextOf(id));
}
