// The client of the authorisation server: device codes (RFC 8628), codes with PKCE over the loopback interface
// (RFC 7636, RFC 8252), refresh and revocation.
import { createHash, randomBytes } from 'node:crypto';
import * as http from 'node:http';
import * as os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT, Failure } from './failure';
import { sendWithRetries } from './http/retry';

const CLIENT_ID = 'platform-cli';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
export const ALL_SCOPES = ['read', 'write', 'deploy', 'env:read', 'env:write', 'logs:read'] as const;

export interface Tokens {
  access_token: string;
  refresh_token?: string;
  expires_in?: number;
  /** Seconds until the login ends unless it is used; servers may leave it out. */
  refresh_token_expires_in?: number;
}

export interface Endpoints {
  issuer: string;
  authorization_endpoint: string;
  token_endpoint: string;
  device_authorization_endpoint: string;
  revocation_endpoint: string;
}

interface OauthError {
  error?: string;
  error_description?: string;
}

/** Reads the addresses from the metadata (RFC 8414). @throws Failure for a server that has none */
export async function findEndpoints(server: string): Promise<Endpoints> {
  const url = new URL('/.well-known/oauth-authorization-server', server);
  const { status, text } = await sendWithRetries({ method: 'GET', url, idleMs: 20_000 });
  const found = status === 200 ? (parseJson(text) as Partial<Endpoints>) : {};
  if (!found.token_endpoint)
    throw new Failure(`${server} has no login for programs: it answered ${status} at ${url.pathname}.`, EXIT.failed, [
      'Check the address. With an older server, use an API key: svc login --token -',
    ]);
  // The issuer is where the metadata was found (RFC 8414 section 3.3), or another server could ask for the login.
  if (new URL(found.issuer ?? '').origin !== new URL(server).origin)
    throw new Failure(`${server} says that it is ${found.issuer}.`, EXIT.failed, [
      `Log in with that address: svc login --url ${found.issuer}`,
    ]);
  return found as Endpoints;
}

export interface DeviceCode {
  device_code: string;
  user_code: string;
  verification_uri: string;
  verification_uri_complete?: string;
  expires_in: number;
  interval?: number;
}

export async function beginDeviceLogin(endpoints: Endpoints, scope: string): Promise<DeviceCode> {
  const begun = await postForm(endpoints.device_authorization_endpoint, { scope, device_name: deviceName() });
  if (!('device_code' in begun)) throw oauthFailure(begun);
  return begun as unknown as DeviceCode;
}

/** Asks until the person has decided. @throws Failure where they refused, or the code expired */
export async function awaitDeviceLogin(endpoints: Endpoints, begun: DeviceCode): Promise<Tokens> {
  let intervalMs = (begun.interval ?? 5) * 1000;
  for (const end = Date.now() + begun.expires_in * 1000; Date.now() < end;) {
    await sleep(intervalMs);
    const answer = await postForm(endpoints.token_endpoint, {
      grant_type: DEVICE_GRANT,
      device_code: begun.device_code,
    });
    if ('access_token' in answer) return answer as unknown as Tokens;
    if (answer.error === 'slow_down') intervalMs += 5000;
    else if (answer.error !== 'authorization_pending') throw oauthFailure(answer);
  }
  throw new Failure('The code has expired. Run `svc login` again.', EXIT.timeout);
}

/**
 * Logs in with a browser that answers at a port of this computer.
 * @param open is given the address to open
 */
export async function logInWithBrowser(
  endpoints: Endpoints,
  scope: string,
  open: (url: string) => void,
): Promise<Tokens> {
  const verifier = randomBytes(32).toString('base64url');
  const state = randomBytes(16).toString('base64url');
  const server = http.createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const redirect_uri = `http://127.0.0.1:${port}/callback`;
  const url = new URL(endpoints.authorization_endpoint);
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  for (const [name, value] of Object.entries({
    ...{ response_type: 'code', client_id: CLIENT_ID, redirect_uri, scope, state, device_name: deviceName() },
    ...{ code_challenge: challenge, code_challenge_method: 'S256' },
  }))
    url.searchParams.set(name, value);
  try {
    const answered = awaitCallback(server, endpoints.issuer, state);
    open(url.href);
    const code = await answered;
    const grant = { grant_type: 'authorization_code', code, redirect_uri, code_verifier: verifier };
    const answer = await postForm(endpoints.token_endpoint, grant);
    if (!('access_token' in answer)) throw oauthFailure(answer);
    return answer as unknown as Tokens;
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const BROWSER_MS = 10 * 60_000;

function awaitCallback(server: http.Server, issuer: string, state: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Failure('Nobody logged in within ten minutes. Run `svc login` again.', EXIT.timeout)),
      BROWSER_MS,
    );
    server.on('request', (request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1');
      // Browsers ask for an icon too, and any page can send a browser here: only our own state counts.
      if (pathname !== '/callback' || searchParams.get('state') !== state)
        return void response.writeHead(404, { 'Content-Type': 'text/plain' }).end('Not found.\n');
      clearTimeout(timer);
      const error = searchParams.get('error');
      const isOurs = searchParams.get('iss') === issuer;
      const words = error || !isOurs ? 'The login did not work.' : 'You are logged in.';
      const headers = { 'Content-Type': 'text/plain; charset=utf-8', Connection: 'close' };
      response.writeHead(200, headers).end(`${words} You can close this page and return to the terminal.\n`, () => {
        if (error) reject(oauthFailure({ error, error_description: searchParams.get('error_description') ?? '' }));
        else if (!isOurs) reject(new Failure('Another server answered the login (RFC 9207).', EXIT.denied));
        else resolve(searchParams.get('code') ?? '');
      });
    });
  });
}

/** @throws Failure with exit code 3 where the login has ended */
export async function refreshTokens(server: string, refresh_token: string): Promise<Tokens> {
  const endpoint = new URL('/oauth/token', server).href;
  const answer = await postForm(endpoint, { grant_type: 'refresh_token', refresh_token });
  if ('access_token' in answer) return answer as unknown as Tokens;
  if (answer.error !== 'invalid_grant') throw oauthFailure(answer);
  throw new Failure(`The login at ${server} has ended.`, EXIT.denied, [`Run: svc login --url ${server}`]);
}

export async function revokeToken(server: string, token: string): Promise<void> {
  await postForm(new URL('/oauth/revoke', server).href, { token });
}

async function postForm(url: string, fields: Record<string, string>): Promise<Record<string, unknown> & OauthError> {
  const request = {
    method: 'POST',
    url: new URL(url),
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'application/json' },
    body: new URLSearchParams({ client_id: CLIENT_ID, ...fields }).toString(),
    idleMs: 30_000,
  };
  // The server takes a refresh token once more whose answer was lost. A code it takes once.
  const isRefresh = fields.grant_type === 'refresh_token';
  const { status, text, headers } = await sendWithRetries(request, isRefresh ? 'repeatable' : 'without_key');
  const body = text ? parseJson(text) : {};
  if (status === 429 || status === 503)
    throw new Failure(`The server asks to come back in ${headers['retry-after'] ?? 'some'} s.`, EXIT.retry);
  if (status >= 400 && !body.error)
    throw new Failure(`${new URL(url).pathname} answered with status ${status}: ${String(body.detail ?? '')}`);
  return body;
}

function oauthFailure({ error, error_description }: OauthError): Failure {
  if (error === 'access_denied') return new Failure('The login was refused.', EXIT.denied);
  if (error === 'expired_token') return new Failure('The code has expired. Run `svc login` again.', EXIT.timeout);
  return new Failure(`The login did not work: ${error_description || error || 'no reason was given'}.`, EXIT.denied);
}

function parseJson(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

const deviceName = (): string => os.hostname().slice(0, 60) || 'unknown';
