// GitHub login: OAuth 2 without OpenID Connect, where the API identifies the user.
import {
  LoginProviderError,
  type LoginProviderClient,
  type LoginProviderSetting,
  type ProvidedLogin,
} from '../../core/accounts/login_provider';
import { normalProvidedEmail, normalProvidedName } from './email';
import { failureOf } from './failure';
import type { GuardedFetch } from './guarded_fetch';
import type * as Oidc from 'openid-client' with { 'resolution-mode': 'import' };

const PUBLIC = 'https://github.com';
const SCOPE = 'read:user user:email';

export function githubLogin(setting: LoginProviderSetting, fetch: GuardedFetch): LoginProviderClient {
  return {
    async authorizationUrl(redirect_uri, { state, verifier }) {
      const oidc = await import('openid-client');
      return oidc.buildAuthorizationUrl(await configurationOf(setting, fetch), {
        ...{ redirect_uri, scope: SCOPE, state, code_challenge_method: 'S256' },
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      }).href;
    },
    async finish(callback, { state, verifier }) {
      try {
        const oidc = await import('openid-client');
        const configuration = await configurationOf(setting, fetch);
        const { access_token } = await oidc.authorizationCodeGrant(configuration, callback, {
          ...{ pkceCodeVerifier: verifier, expectedState: state },
        });
        const [user, emails] = await Promise.all([
          getJson(setting, fetch, '/user', access_token),
          getJson(setting, fetch, '/user/emails', access_token),
        ]);
        return providedLogin(setting, user, emails);
      } catch (error) {
        throw failureOf(setting, error);
      }
    },
  };
}

async function configurationOf(
  { issuer, client_id, client_secret }: LoginProviderSetting,
  fetch: GuardedFetch,
): Promise<Oidc.Configuration> {
  const oidc = await import('openid-client');
  const server = {
    // The issuer as stated by GitHub.
    issuer: `${issuer}/login/oauth`,
    authorization_endpoint: `${issuer}/login/oauth/authorize`,
    token_endpoint: `${issuer}/login/oauth/access_token`,
  };
  const configuration = new oidc.Configuration(server, client_id, {}, oidc.ClientSecretPost(client_secret));
  configuration[oidc.customFetch] = fetch as unknown as Oidc.CustomFetch;
  if (issuer.startsWith('http:')) oidc.allowInsecureRequests(configuration);
  return configuration;
}

async function getJson(
  { issuer, title }: LoginProviderSetting,
  fetch: GuardedFetch,
  path: string,
  token: string,
): Promise<unknown> {
  const api = issuer === PUBLIC ? 'https://api.github.com' : `${issuer}/api/v3`;
  const answer = await fetch(api + path, {
    headers: {
      Authorization: `Bearer ${token}`,
      Accept: 'application/vnd.github+json',
      'X-GitHub-Api-Version': '2022-11-28',
      // GitHub rejects requests without it.
      'User-Agent': 'platform-api',
    },
  });
  const json: unknown = await answer.json().catch(() => null);
  if (answer.status === 200) return json;
  throw new LoginProviderError(
    'invalid',
    `${title} did not send the identity of your user.`,
    `${path} answered ${answer.status}`,
  );
}

function providedLogin({ issuer, title }: LoginProviderSetting, user: unknown, emails: unknown): ProvidedLogin {
  const { id, name, login } = (user ?? {}) as Record<string, unknown>;
  if (!Number.isSafeInteger(id))
    throw new LoginProviderError('invalid', `${title} did not send the identity of your user.`, 'the user has no id');
  const list = (Array.isArray(emails) ? emails : []) as { email?: unknown; primary?: unknown; verified?: unknown }[];
  const primary = list.find((one) => one?.primary === true);
  return {
    // User names can be transferred; ids cannot.
    ...{ issuer, subject: String(id) },
    email: normalProvidedEmail(primary?.email),
    email_verified: primary?.verified === true,
    name: normalProvidedName(name) ?? normalProvidedName(login),
    // GitHub does not report the authentication method.
    multi_factor: false,
  };
}
