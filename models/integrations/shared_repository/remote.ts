// How to reach a shared repository: with its key, with the token of its integration, or without anything.
import type { GitRemote } from '../../../core/protocols/git_remote';
import { gitPasswordOf, gitUsernameOf, type GitAccess } from '../../../core/protocols/git_provider';
import { accessOf, type GitContext } from '../git_integration/client';
import type { Access } from './access';
import { sealedColumns } from '../../base/sealed_columns';

export interface SharedRemote {
  id: string;
  url: string;
  access: Access;
  git_integration_id: string | null;
  sealed_key: string | null;
  host_key: string | null;
}

/** @throws GitProviderError, invalid_state where its integration is not active */
export async function remoteOfShared(ctx: GitContext, row: SharedRemote): Promise<GitRemote> {
  const { id, url: address, access, git_integration_id, sealed_key, host_key } = row;
  if (access === 'deploy_key' && sealed_key !== null) {
    const private_key = ctx.secrets.open(sealed_key, sealedColumns.deployKey.contextOf(id));
    return { address, credential: { kind: 'ssh_key', private_key }, host_key };
  }
  if (access !== 'git_integration' || git_integration_id === null) return { address };
  return { address, credential: credentialOf((await accessOf(ctx, git_integration_id)).access) };
}

/** A token as git sends it over https. */
export function credentialOf(access: GitAccess): NonNullable<GitRemote['credential']> {
  return { kind: 'basic', username: gitUsernameOf(access), password: gitPasswordOf(access) };
}
