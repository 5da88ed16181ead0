// Git providers: GitHub, GitLab, Bitbucket and Gitea, each at its public service or at an address of the user's own.
// Every request goes through core/outbound/, which connects to the address that was checked.
import type { GitAccess, GitOauth, GitProviderClient } from '../core/protocols/git_provider';

/** Base URLs of a provider. */
export interface GitService {
  web: string;
  api: string;
}

export interface GitProviders {
  client(access: GitAccess, signal?: AbortSignal): GitProviderClient;
  oauth: GitOauth;
}
