// OpenID Connect: authorisation code flow with PKCE, state and nonce, by openid-client (certified). ID token signatures
// are verified although they are received over TLS, and so is the issuer of the response (RFC 9207).
import type { LoginProviderClient, LoginProviderSetting, ProvidedLogin } from '../../core/accounts/login_provider';
import { normalProvidedEmail, normalProvidedName } from './email';
import { failureOf } from './failure';
import type { GuardedFetch } from './guarded_fetch';
import type * as Oidc from 'openid-client' with { 'resolution-mode': 'import' };

type Claims = Record<string, unknown>;

/** The discovery document is reloaded after this time. */
const CONFIGURATION_MS = 10 * 60_000;
const SCOPE = 'openid email profile';

export function oidcLogin(setting: LoginProviderSetting, fetch: GuardedFetch): LoginProviderClient {
  let known: { at: number; configuration: Promise<Oidc.Configuration> } | null = null;
  const configured = (): Promise<Oidc.Configuration> => {
    if (known && Date.now() - known.at < CONFIGURATION_MS) return known.configuration;
    const configuration = discover(setting, fetch);
    known = { at: Date.now(), configuration };
    configuration.catch(() => (known = null));
    return configuration;
  };
  return {
    async authorizationUrl(redirect_uri, { state, nonce, verifier }) {
      try {
        const oidc = await import('openid-client');
        return oidc.buildAuthorizationUrl(await configured(), {
          ...{ redirect_uri, scope: SCOPE, state, nonce, code_challenge_method: 'S256' },
          code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        }).href;
      } catch (error) {
        throw failureOf(setting, error);
      }
    },
    async finish(callback, { state, nonce, verifier }) {
      try {
        const oidc = await import('openid-client');
        const configuration = await configured();
        const tokens = await oidc.authorizationCodeGrant(configuration, callback, {
          ...{ pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true },
        });
        const claims = tokens.claims() as Oidc.IDToken;
        return providedLogin(claims, await moreClaims(oidc, configuration, tokens.access_token, claims));
      } catch (error) {
        throw failureOf(setting, error);
      }
    },
  };
}

async function discover(setting: LoginProviderSetting, fetch: GuardedFetch): Promise<Oidc.Configuration> {
  const oidc = await import('openid-client');
  const { issuer, client_id, client_secret } = setting;
  // Plain HTTP on the loopback interface only: core/config.ts rejects other issuers.
  const insecure = issuer.startsWith('http:') ? [oidc.allowInsecureRequests] : [];
  const customFetch = fetch as unknown as Oidc.CustomFetch;
  const found = await oidc.discovery(new URL(issuer), client_id, undefined, oidc.None(), {
    ...{ execute: insecure, [oidc.customFetch]: customFetch },
  });
  const server = found.serverMetadata();
  const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  const inForm = methods.includes('client_secret_post') && !methods.includes('client_secret_basic');
  const auth = inForm ? oidc.ClientSecretPost(client_secret) : oidc.ClientSecretBasic(client_secret);
  const configuration = new oidc.Configuration(server, client_id, { client_secret }, auth);
  configuration[oidc.customFetch] = customFetch;
  for (const apply of [...insecure, oidc.enableNonRepudiationChecks]) apply(configuration);
  return configuration;
}

/** Many providers return the e-mail address only from the UserInfo endpoint. Its subject must match. */
async function moreClaims(
  oidc: typeof Oidc,
  configuration: Oidc.Configuration,
  accessToken: string,
  claims: Oidc.IDToken,
): Promise<Claims> {
  if (claims.email !== undefined || !configuration.serverMetadata().userinfo_endpoint) return claims;
  return { ...claims, ...(await oidc.fetchUserInfo(configuration, accessToken, claims.sub)) };
}

/** Identity and authentication factors come from the signed ID token only. */
function providedLogin({ iss, sub, amr }: Oidc.IDToken, { email, email_verified, name }: Claims): ProvidedLogin {
  return {
    issuer: iss,
    subject: sub,
    email: normalProvidedEmail(email),
    email_verified: email_verified === true,
    name: normalProvidedName(name),
    multi_factor: Array.isArray(amr) && amr.includes('mfa'),
  };
}
