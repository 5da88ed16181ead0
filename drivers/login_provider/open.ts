// Providers that people log in at: OpenID Connect by openid-client, and GitHub by its OAuth. Every request goes through
// core/outbound/, which connects to the address that was checked.
import type { LoginProviderClient, LoginProviderSetting } from '../../core/accounts/login_provider';
import { githubLogin } from './github';
import { guardedFetch } from './guarded_fetch';
import { oidcLogin } from './oidc';
import type { Outbound } from '../../core/outbound';

/**
 * @param outbound for addresses named by the provider, such as its token endpoint @param trusted for the issuer's host,
 * which is configured by the operator and may be in a private network
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
