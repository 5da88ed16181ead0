// The authorisation server as seen by clients: its endpoints and metadata documents, and its built-in client.
import type { Address } from './host_cookie';
import { scopes } from './scopes';

export const OAUTH_PATHS = {
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  deviceAuthorization: '/oauth/device_authorization',
  device: '/oauth/device',
  revoke: '/oauth/revoke',
  register: '/oauth/register',
  /** Interaction pages: login and consent. The id of the interaction follows. */
  interaction: '/oauth/interaction/',
} as const;

export const SERVER_METADATA_PATH = '/.well-known/oauth-authorization-server';
export const RESOURCE_METADATA_PATH = '/.well-known/oauth-protected-resource';

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const GRANT_TYPES = ['authorization_code', 'refresh_token', DEVICE_GRANT] as const;

/** The built-in client: a program without a secret on the person's computer. */
export const COMMAND_LINE_CLIENT = {
  client_id: 'platform-cli',
  client_name: 'Command line',
  redirect_uris: ['http://127.0.0.1/callback', 'http://[::1]/callback', 'http://localhost/callback'],
} as const;

/**
 * Metadata of a public client (RFC 7591). A client on a person's computer may listen on any loopback port.
 * @param grant_types permitted grant types
 */
export function publicClient(
  client: { client_id: string; client_name: string; redirect_uris: string[] },
  grant_types: readonly string[] = GRANT_TYPES,
): { client_id: string } {
  const isNative = client.redirect_uris.some((uri) => !uri.startsWith('https:'));
  return {
    ...client,
    ...{ application_type: isNative ? 'native' : 'web', token_endpoint_auth_method: 'none' },
    ...{ grant_types: [...grant_types], response_types: ['code'], scope: 'offline_access' },
  };
}

/** A name, or an address, in the normal form of URLs. Other characters would be parts of a pattern or a mistake. */
const HOST = /^(?:[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9])?)*\.?|\[[0-9a-f:]+\])$/;

/** Loopback host names. */
export const LOOPBACK = ['127.0.0.1', '[::1]', 'localhost'];

/**
 * Whether an address is a permitted redirect URI: https, http on the loopback interface, or a private-use scheme with a
 * dot (RFC 8252 section 7). Without wildcards, which other servers expand: addresses are compared exactly here.
 */
export function isRedirectUri(text: string): boolean {
  if (text.length > 500 || /[#*\\]|%2a/i.test(text) || !URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  if (username || password) return false;
  if (protocol === 'https:') return HOST.test(hostname) && !LOOPBACK.includes(hostname);
  return protocol === 'http:' ? LOOPBACK.includes(hostname) : /^[a-z][a-z0-9+-]*\.[a-z0-9.+-]+:$/.test(protocol);
}

/** Days without use after which a refresh token, and so the connection, expires. */
export const REFRESH_DAYS = 90;
export const ACCESS_TOKEN_SECONDS = 3600;
export const DEVICE_CODE_SECONDS = 600;

interface Described extends Address {
  oauthRegistration: boolean;
}

/** Values that a client may use as `resource` (RFC 8707): the API and its endpoints. */
export function isOwnResource({ baseUrl }: Address, resource: string): boolean {
  return [baseUrl, `${baseUrl}/`, `${baseUrl}/v2`, `${baseUrl}/mcp`].includes(resource);
}

/** RFC 8414. */
export function serverMetadata({ baseUrl, oauthRegistration }: Described): Record<string, unknown> {
  return {
    issuer: baseUrl,
    authorization_endpoint: baseUrl + OAUTH_PATHS.authorize,
    token_endpoint: baseUrl + OAUTH_PATHS.token,
    device_authorization_endpoint: baseUrl + OAUTH_PATHS.deviceAuthorization,
    revocation_endpoint: baseUrl + OAUTH_PATHS.revoke,
    ...(oauthRegistration && { registration_endpoint: baseUrl + OAUTH_PATHS.register }),
    scopes_supported: [...Object.keys(scopes), 'offline_access'],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: GRANT_TYPES,
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    service_documentation: `${baseUrl}/v2/docs`,
  };
}

/** RFC 9728. */
export function resourceMetadata({ baseUrl }: Address): Record<string, unknown> {
  return {
    resource: baseUrl,
    authorization_servers: [baseUrl],
    scopes_supported: Object.keys(scopes),
    bearer_methods_supported: ['header'],
    resource_documentation: `${baseUrl}/v2/docs`,
  };
}
