// Providers that people log in at: OpenID Connect by openid-client, and GitHub by its OAuth. Every request goes through
// core/outbound/, which connects to the address that was checked.
import type { LoginProviderClient, LoginProviderSetting } from '../../core/accounts/login_provider';
import { githubLogin } from './github';
import { guardedFetch } from './guarded_fetch';
import { oidcLogin } from './oidc';
import type { Outbound } from '../../core/outbound';

/**
 * @param outbound for what a provider names, such as its address for tokens @param trusted for the host of the issuer,
 * which the operator has named: it may be in a network of the operator's own
 */
export function openLoginProvider(
  setting: LoginProviderSetting,
  outbound: Outbound,
  trusted: Outbound,
): LoginProviderClient {
  const { host } = new URL(setting.issuer);
  const fetch = guardedFetch((url) => (url.host === host ? trusted : outbound));
  return setting.type === 'github' ? githubLogin(setting, fetch) : oidcLogin(setting, fetch);
}
