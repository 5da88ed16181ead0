// Webhook addresses for push notifications. A request to one only makes the platform poll the repository: the deployed
// commit is always read from the repository itself.
import { createHash, randomBytes } from 'node:crypto';
import type { Config } from '../../../core/config';
import type { SecretBox } from '../../../core/secrets';
import { sealedColumns } from '../../base/sealed_columns';

export const HOOK_PATH = '/hooks/git/';

/** `secret` signs what the provider sends, where it was created through the provider's API. */
export interface Hook {
  token: string;
  secret: string;
}

/** @param owner id of the row that keeps it */
export function newHook(secrets: SecretBox, owner: string): { sealed_hook: string; hook_hash: string } {
  const hook: Hook = { token: randomBytes(24).toString('base64url'), secret: randomBytes(32).toString('base64url') };
  return {
    sealed_hook: secrets.seal(JSON.stringify(hook), sealedColumns.gitHook.contextOf(owner)),
    hook_hash: hookTokenHash(hook.token),
  };
}

export function openHook(secrets: SecretBox, { id, sealed_hook }: { id: string; sealed_hook: string }): Hook {
  return JSON.parse(secrets.open(sealed_hook, sealedColumns.gitHook.contextOf(id))) as Hook;
}

export function hookUrl({ baseUrl }: Pick<Config, 'baseUrl'>, { token }: Hook): string {
  return `${baseUrl}${HOOK_PATH}${token}`;
}

export function hookTokenHash(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
