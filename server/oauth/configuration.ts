// The configuration of oidc-provider: supported grants and lifetimes, every other feature disabled.
import { generateKeyPairSync } from 'node:crypto';
import {
  ACCESS_TOKEN_SECONDS,
  COMMAND_LINE_CLIENT,
  DEVICE_CODE_SECONDS,
  isOwnResource,
  OAUTH_PATHS,
  publicClient,
  REFRESH_DAYS,
} from '../../core/accounts/oauth';
import { isScope, scopes } from '../../core/accounts/scopes';
import { readSessionCookie } from '../../core/accounts/session_cookie';
import { isActivePerson } from '../../models/identity/oauth/connection';
import { clientAddress } from '../platform/context';
import type { Platform } from '../platform/platform';
import { adapterClass, type Surroundings } from './adapter';
import { devicePages, errorPage } from './pages';
import type { Configuration, OauthContext, OidcModule, Policy } from './types';

type Errors = OidcModule['errors'];

const DAY_SECONDS = 86_400;
const HOUR_SECONDS = 3600;
/** How long things last. */
const SECONDS = {
  AccessToken: ACCESS_TOKEN_SECONDS,
  AuthorizationCode: 60,
  DeviceCode: DEVICE_CODE_SECONDS,
  // Grants end with their key, not by themselves.
  Grant: 3650 * DAY_SECONDS,
  Interaction: HOUR_SECONDS,
  RefreshToken: REFRESH_DAYS * DAY_SECONDS,
  Session: HOUR_SECONDS,
};
const NAME_CHARACTERS_MAX = 60;

export function providerConfiguration(platform: Platform, around: Surroundings, oidc: OidcModule): Configuration {
  const { errors } = oidc;
  const { config, secrets } = platform;
  const isHttps = config.baseUrl.startsWith('https:');
  const cookie = { httpOnly: true, sameSite: 'lax', secure: isHttps, signed: true, overwrite: true } as const;
  return {
    adapter: adapterClass(around),
    clients: [publicClient({ ...COMMAND_LINE_CLIENT, redirect_uris: [...COMMAND_LINE_CLIENT.redirect_uris] })],
    clientAuthMethods: ['none'],
    clientBasedCORS: () => false,
    clientDefaults: { token_endpoint_auth_method: 'none', id_token_signed_response_alg: 'ES256' },
    cookies: {
      keys: [secrets.subKey('oauth cookies').export().toString('base64url')],
      long: cookie,
      short: cookie,
      names: { session: 'oauth_session', interaction: 'oauth_interaction', resume: 'oauth_resume' },
    },
    expiresWithSession: () => false,
    extraParams: {
      device_name(ctx, value) {
        requireKnownScopes(errors, ctx);
        if (value !== undefined && value.length > NAME_CHARACTERS_MAX)
          throw new errors.InvalidRequest(`device_name has at most ${NAME_CHARACTERS_MAX} characters`);
      },
    },
    features: features(platform, errors),
    findAccount: async (_, sub) =>
      (await isActivePerson(around.context().sql, sub)) ? { accountId: sub, claims: () => ({ sub }) } : undefined,
    interactions: { policy: policy(platform, oidc), url: (_, { uid }) => OAUTH_PATHS.interaction + uid },
    issueRefreshToken: async (_, client) => client.grantTypeAllowed('refresh_token'),
    // No token is signed: the server needs a key, but its signatures are never used.
    jwks: { keys: [generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })] },
    // Consent is requested each time: any program can claim the identity of a public client (RFC 8252 section 8.6).
    loadExistingGrant: async ({ oidc }) => {
      const id = oidc.result?.consent?.grantId;
      return id ? oidc.provider.Grant.find(id) : undefined;
    },
    pkce: { required: () => true },
    renderError: (ctx, out) => errorPage(ctx, out),
    responseTypes: ['code'],
    revokeGrantPolicy: () => true,
    rotateRefreshToken: true,
    routes: {
      authorization: OAUTH_PATHS.authorize,
      token: OAUTH_PATHS.token,
      device_authorization: OAUTH_PATHS.deviceAuthorization,
      code_verification: OAUTH_PATHS.device,
      revocation: OAUTH_PATHS.revoke,
    },
    scopes: ['offline_access'],
    ttl: SECONDS,
  };
}

/** The usual questions. A login that must be new is one of another session than the one at the time of the request. */
function policy({ config, identities }: Platform, { interactionPolicy }: OidcModule): Policy {
  const prompts = interactionPolicy.base();
  const login = prompts.get('login');
  if (login)
    login.details = async ({ req }) => {
      const secret = readSessionCookie(config, req.headers.cookie);
      return { session_id: secret ? ((await identities.ofSession(secret))?.id ?? null) : null };
    };
  return prompts;
}

function features({ config }: Platform, errors: Errors): Configuration['features'] {
  const off = { enabled: false };
  return {
    claimsParameter: off,
    clientCredentials: off,
    devInteractions: off,
    deviceFlow: {
      enabled: true,
      charset: 'base-20',
      mask: '****-****',
      deviceInfo: (ctx) => ({
        ip: clientAddress(ctx.req, config.trustProxy),
        ua: String(ctx.req.headers['user-agent'] ?? '').slice(0, 200),
      }),
      ...devicePages(),
    },
    dPoP: off,
    introspection: off,
    pushedAuthorizationRequests: off,
    requestObjects: off,
    resourceIndicators: {
      enabled: true,
      defaultResource: async (_, __, oneOf) => (oneOf?.length ? oneOf : config.baseUrl),
      useGrantedResource: async () => true,
      getResourceServerInfo: async (_, resource) => {
        if (!isOwnResource(config, resource))
          throw new errors.InvalidTarget('the resource does not belong to this server');
        return { scope: Object.keys(scopes).join(' '), accessTokenFormat: 'opaque', audience: config.baseUrl };
      },
    },
    revocation: { enabled: true, allowedPolicy: async (_, client, token) => token.clientId === client.clientId },
    rpInitiatedLogout: off,
    userinfo: off,
  };
}

/** A scope that does not exist is refused, and so is a request for nothing. */
function requireKnownScopes(errors: Errors, { oidc }: OauthContext): void {
  const requested = String(oidc.params?.scope ?? '').split(' ');
  const unknown = requested.filter((scope) => scope !== 'offline_access' && !isScope(scope));
  if (unknown.length || !requested.some(isScope))
    throw new errors.InvalidScope(`scope needs one or more of ${Object.keys(scopes).join(', ')}`, unknown.join(' '));
}
