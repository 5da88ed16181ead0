// Which Git addresses an operator allows (docs/decisions/rules.md §28). The name is not resolved here: the code that
// fetches checks the resolved address.
import { isPrivateHost } from '../../core/protocols/addresses';
import type { Config } from '../../core/config';

type GitSettings = Pick<Config, 'allowHttpGit' | 'allowLocalGit' | 'allowPrivateAddresses'>;

/** The reason why this installation rejects a well-formed Git address; null if it is allowed. */
export function validateGitAddress(address: string, settings: GitSettings): string | null {
  const scheme = /^([a-z]+):\/\//i.exec(address)?.[1]?.toLowerCase() ?? 'ssh';
  if (scheme === 'file') return settings.allowLocalGit ? null : 'must be an https or ssh address';
  if (scheme === 'http' && !settings.allowHttpGit) return 'must be an https or ssh address';
  if (!settings.allowPrivateAddresses && isPrivateHost(gitHostOf(address))) return 'must lead to a public address';
  return null;
}

function gitHostOf(address: string): string {
  const authority = /^[a-z]+:\/\//i.test(address)
    ? address.replace(/^[a-z]+:\/\//i, '').split(/[/?#]/, 1)[0]
    : address.split(':', 1)[0];
  const host = (authority ?? '').replace(/^.*@/, '');
  return URL.canParse(`http://${host}/`) ? new URL(`http://${host}/`).hostname : '';
}
