// Where a self-hosted provider is.
import { isPrivateHost } from '../../../core/protocols/addresses';
import type { Config } from '../../../core/config';
import { validationFailed } from '../../../core/errors';
import type { GitProviderName } from '../../../core/protocols/git_provider';

const PUBLIC: Readonly<Record<GitProviderName, string>> = {
  github: 'https://github.com',
  gitlab: 'https://gitlab.com',
  bitbucket: 'https://bitbucket.org',
  gitea: 'https://gitea.com',
};

/**
 * Without a slash at its end; null for the public service. That the name leads to a public address is checked when a
 * connection is made.
 * @throws validation_failed
 */
export function normalBaseUrl(
  { allowHttpGit, allowPrivateAddresses }: Pick<Config, 'allowHttpGit' | 'allowPrivateAddresses'>,
  provider: GitProviderName,
  given: string | null,
): string | null {
  if (given === null) return null;
  const url = new URL(given);
  const base = `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
  if (base === PUBLIC[provider]) return null;
  if (provider === 'bitbucket') throw mistake('depends_on', 'is not for bitbucket, which is not self-hosted');
  if (url.search || url.hash) throw mistake('invalid_format', 'must have no query and no fragment');
  if (url.protocol !== 'https:' && !allowHttpGit) throw mistake('invalid_format', 'must begin with https://');
  if (!allowPrivateAddresses && isPrivateHost(url.hostname))
    throw mistake('invalid_format', 'must lead to a public address');
  return base;
}

function mistake(code: 'depends_on' | 'invalid_format', detail: string): Error {
  return validationFailed([{ field: 'base_url', code, detail }]);
}
