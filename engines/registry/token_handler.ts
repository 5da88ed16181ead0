// The token endpoint: GET with basic authentication, as sent by Docker, Podman and Skopeo, and POST as in OAuth 2
// (distribution.github.io/distribution/spec/auth/token and …/auth/oauth).
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RegistryTokens } from '../../core/protocols/registry_content';
import { RegistryError } from './errors';
import { readBody, respondWithJson } from './exchange';

const FORM_BYTES_MAX = 16 * 1024;
const SCOPES_MAX = 20;

interface TokenRequest {
  username: string;
  password: string;
  scopes: string[];
}

/**
 * @param client what it asks for, and the address that failed logins count for
 * @throws UNAUTHORIZED, TOOMANYREQUESTS
 */
export async function issueToken(
  request: IncomingMessage,
  response: ServerResponse,
  { query, address }: { query: URLSearchParams; address: string },
  tokens: RegistryTokens,
): Promise<void> {
  const { username, password, scopes } = request.method === 'POST' ? await formOf(request) : basicOf(request, query);
  const issued = await tokens.issue({ username, password }, scopes.slice(0, SCOPES_MAX), address);
  if (issued === 'rate_limited')
    throw new RegistryError('TOOMANYREQUESTS', 'Too many failed logins. Try again in a minute.', {
      headers: { 'Retry-After': '60' },
    });
  if (!issued) throw wrongCredentials();
  respondWithJson(response, { ...issued, access_token: issued.token }, { 'Cache-Control': 'no-store' });
}

function basicOf(request: IncomingMessage, query: URLSearchParams): TokenRequest {
  const [, encoded] = /^basic +([A-Za-z0-9+/_=-]+) *$/i.exec(request.headers.authorization ?? '') ?? [];
  if (encoded === undefined) throw wrongCredentials();
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return {
    username: text.slice(0, Math.max(colon, 0)),
    password: text.slice(colon + 1),
    scopes: query.getAll('scope').flatMap((scope) => scope.split(' ')),
  };
}

async function formOf(request: IncomingMessage): Promise<TokenRequest> {
  const form = new URLSearchParams((await readBody(request, FORM_BYTES_MAX)).toString('utf8'));
  if (form.get('grant_type') !== 'password') throw wrongCredentials();
  return {
    username: form.get('username') ?? '',
    password: form.get('password') ?? '',
    scopes: (form.get('scope') ?? '').split(' ').filter(Boolean),
  };
}

function wrongCredentials(): RegistryError {
  return new RegistryError(
    'UNAUTHORIZED',
    'Log in with a robot account, or with any user name and an API key as the password.',
    { headers: { 'WWW-Authenticate': 'Basic realm="container registry"' } },
  );
}
