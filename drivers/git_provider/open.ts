import type { GitAccess, GitProviderName } from '../../core/protocols/git_provider';
import type { Outbound } from '../../core/outbound';
import type { GitProviders, GitService } from '../git_provider';
import { openApi, type RateLimits } from './api';
import { bitbucketClient } from './bitbucket';
import { giteaClient } from './gitea';
import { githubClient } from './github';
import { gitlabClient } from './gitlab';
import { openOauth } from './oauth';

/** The public services. Tests put peers of their own here. */
const PUBLIC_SERVICES: Readonly<Record<GitProviderName, GitService>> = {
  github: { web: 'https://github.com', api: 'https://api.github.com' },
  gitlab: { web: 'https://gitlab.com', api: 'https://gitlab.com/api/v4' },
  bitbucket: { web: 'https://bitbucket.org', api: 'https://api.bitbucket.org/2.0' },
  gitea: { web: 'https://gitea.com', api: 'https://gitea.com/api/v1' },
};

const API_PATHS: Readonly<Record<GitProviderName, string>> = {
  github: '/api/v3',
  gitlab: '/api/v4',
  bitbucket: '/2.0',
  gitea: '/api/v1',
};

const CLIENTS = { github: githubClient, gitlab: gitlabClient, bitbucket: bitbucketClient, gitea: giteaClient };

export function openGitProviders(outbound: Outbound, services = PUBLIC_SERVICES): GitProviders {
  const limits: RateLimits = new Map();
  const serviceOf = ({ provider, base_url }: Pick<GitAccess, 'provider' | 'base_url'>): GitService =>
    base_url === null ? services[provider] : { web: base_url, api: base_url + API_PATHS[provider] };
  return {
    client(access, signal) {
      const service = serviceOf(access);
      return CLIENTS[access.provider](openApi({ outbound, access, service, limits, signal }));
    },
    oauth: openOauth(outbound, serviceOf),
  };
}
