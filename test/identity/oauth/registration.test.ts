// Clients that register themselves (RFC 7591), with oauth4webapi, openid-client and the MCP SDK as programs.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { RETENTIONS, sweep } from '../../../models/periodic_task';
import { makeContext } from '../../../server/platform/context';
import { isSelfRegistered } from '../../../models/identity/oauth/client';
import { startService, type TestService } from '../../support/service';
import { openClient } from './client';
import { logIn, newPerson, type Person } from '../../support/identity/person';

const SDK = path.resolve(__dirname, '../../../node_modules/@modelcontextprotocol/sdk/dist/esm/client/auth.js');
const LOCAL = 'http://127.0.0.1:49152/callback';
const HOSTED = 'https://agent.example.com/callback';

/* oxlint-disable-next-line typescript/no-explicit-any -- answers are whatever the service sends */
type Data = any;

let service: TestService;
let person: Person;

beforeAll(async () => {
  service = await startService({ settings: { OAUTH_REGISTRATION: '1', TRUST_PROXY: '1' } });
  person = await newPerson(service, 'registration@example.com', 'owner');
});
afterAll(() => service.close());

let network = 0;

/** Each from an address of its own, unless it says which. */
async function register(body: unknown, headers: Record<string, string> = {}): Promise<{ status: number; body: Data }> {
  network += 1;
  const answer = await fetch(`${service.url}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': `192.0.2.${network}`, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  expect(answer.headers.get('cache-control')).toBe('no-store');
  return { status: answer.status, body: await answer.json() };
}

it('is off by default, and then nobody is told of it', async () => {
  const closed = await startService();
  try {
    const metadata = await (await fetch(`${closed.url}/.well-known/oauth-authorization-server`)).json();
    expect(metadata).not.toHaveProperty('registration_endpoint');
    const answer = await fetch(`${closed.url}/oauth/register`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
      body: JSON.stringify({ redirect_uris: [LOCAL] }),
    });
    expect(answer.status).toBe(404);
  } finally {
    await closed.close();
  }
});

it('takes oauth4webapi from the registration to tokens, and the page says that nobody vouches for it', async () => {
  const oauth = await import('oauth4webapi');
  const { server } = await openClient(service);
  const asked = { client_name: 'Helpful agent', redirect_uris: [LOCAL], token_endpoint_auth_method: 'none' };
  const answer = await oauth.dynamicClientRegistrationRequest(server, asked, {
    [oauth.allowInsecureRequests]: true,
  });
  const registered = await oauth.processDynamicClientRegistrationResponse(answer);
  expect(registered).toMatchObject({ ...asked, grant_types: ['authorization_code'], response_types: ['code'] });
  const client = await openClient(service, registered.client_id);
  const request = await client.ask();
  const login = await person.open(request.url);
  expect(login.html).toContain('A program that calls itself “Helpful agent” asks to act for you.');
  const consent = await logIn(person, login);
  expect(consent.title).toBe('Allow a program that calls itself “Helpful agent” to act for you?');
  expect(consent.html).toContain('This program is not verified');
  expect(consent.html).toContain('a program on this computer (127.0.0.1:49152)');
  const tokens = await client.redeem(request, await person.submit(consent, { action: 'allow' }));
  // It has not asked for the grant of refresh tokens.
  expect(tokens.refresh_token).toBeUndefined();
  const me = await service.call('GET', '/v2/me', { key: tokens.access_token, project: null });
  expect(me).toMatchObject({ status: 200, body: { token: { kind: 'oauth' } } });
});

it('takes openid-client, whose hosted address the page names', async () => {
  const oidc = await import('openid-client');
  const config = await oidc.dynamicClientRegistration(
    new URL(service.url),
    {
      ...{ client_name: 'Hosted <b>agent</b>', redirect_uris: [HOSTED, LOCAL], token_endpoint_auth_method: 'none' },
      grant_types: ['authorization_code', 'refresh_token'],
    },
    oidc.None(),
    { algorithm: 'oauth2', execute: [oidc.allowInsecureRequests] },
  );
  const verifier = oidc.randomPKCECodeVerifier();
  const url = oidc.buildAuthorizationUrl(config, {
    ...{ redirect_uri: HOSTED, scope: 'read', state: 'state' },
    ...{ code_challenge: await oidc.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' },
  });
  const consent = await person.open(url.href);
  expect(consent.html).toContain('Whoever controls agent.example.com receives the access that you allow.');
  expect(consent.html).not.toContain('<b>agent');
  const back = await person.submit(consent, { action: 'allow' });
  const tokens = await oidc.authorizationCodeGrant(config, new URL(back.url), {
    ...{ pkceCodeVerifier: verifier, expectedState: 'state' },
  });
  expect((await oidc.refreshTokenGrant(config, tokens.refresh_token as string)).access_token).toMatch(/^svc_oauth_/);
  await expect(oidc.initiateDeviceAuthorization(config, { scope: 'read' })).rejects.toMatchObject({
    error: expect.stringMatching(/unauthorized_client|invalid_client|invalid_request/),
  });
});

const withSdk = existsSync(SDK) ? it : it.skip;

withSdk(`takes the client of the MCP SDK${existsSync(SDK) ? '' : ' (not installed)'}`, async () => {
  const { auth } = (await import(SDK)) as { auth(provider: object, options: object): Promise<string> };
  const kept: Record<string, Data> = {};
  const provider = {
    redirectUrl: LOCAL,
    clientMetadata: {
      ...{ client_name: 'MCP client', redirect_uris: [LOCAL], token_endpoint_auth_method: 'none' },
      ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], scope: 'read' },
    },
    state: () => 'state',
    clientInformation: () => kept.client,
    saveClientInformation: (client: unknown) => void (kept.client = client),
    tokens: () => kept.tokens,
    saveTokens: (tokens: unknown) => void (kept.tokens = tokens),
    redirectToAuthorization: (url: URL) => void (kept.url = url),
    saveCodeVerifier: (verifier: string) => void (kept.verifier = verifier),
    codeVerifier: () => kept.verifier,
  };
  const options = { serverUrl: service.url, scope: 'read' };
  expect(await auth(provider, options)).toBe('REDIRECT');
  const back = await person.submit(await person.open(kept.url.href), { action: 'allow' });
  const authorizationCode = new URL(back.url).searchParams.get('code');
  expect(await auth(provider, { ...options, authorizationCode })).toBe('AUTHORIZED');
  const me = await service.call('GET', '/v2/me', { key: kept.tokens.access_token, project: null });
  expect(me.body.token.kind).toBe('oauth');
  // With its refresh token it gets others.
  const before = kept.tokens.access_token;
  expect(await auth(provider, options)).toBe('AUTHORIZED');
  expect(kept.tokens.access_token).not.toBe(before);
});

it.each([
  ['no object', [], 'invalid_client_metadata'],
  ['no JSON', '{', 'invalid_client_metadata'],
  [
    'a secret',
    { redirect_uris: [LOCAL], token_endpoint_auth_method: 'client_secret_basic' },
    'invalid_client_metadata',
  ],
  ['the implicit grant', { redirect_uris: [LOCAL], response_types: ['token'] }, 'invalid_client_metadata'],
  ['client credentials', { redirect_uris: [LOCAL], grant_types: ['client_credentials'] }, 'invalid_client_metadata'],
  ['a long name', { redirect_uris: [LOCAL], client_name: 'x'.repeat(61) }, 'invalid_client_metadata'],
  ['a name on two lines', { redirect_uris: [LOCAL], client_name: 'Bank\nof you' }, 'invalid_client_metadata'],
  ['a name that reads backwards', { redirect_uris: [LOCAL], client_name: 'a\u202eb' }, 'invalid_client_metadata'],
  ['a name that is none', { redirect_uris: [LOCAL], client_name: { a: 1 } }, 'invalid_client_metadata'],
  ['no addresses', {}, 'invalid_redirect_uri'],
  ['an empty list', { redirect_uris: [] }, 'invalid_redirect_uri'],
  ['a text for a list', { redirect_uris: LOCAL }, 'invalid_redirect_uri'],
  ['eleven addresses', { redirect_uris: Array(11).fill(LOCAL) }, 'invalid_redirect_uri'],
  ['plain http', { redirect_uris: ['http://agent.example.com/'] }, 'invalid_redirect_uri'],
  ['a scheme of its own', { redirect_uris: ['com.example.app:/callback'] }, 'invalid_redirect_uri'],
  ['a script', { redirect_uris: ['javascript:alert(1)//'] }, 'invalid_redirect_uri'],
  ['a fragment', { redirect_uris: [`${HOSTED}#x`] }, 'invalid_redirect_uri'],
  ['a user name', { redirect_uris: ['https://a@agent.example.com/'] }, 'invalid_redirect_uri'],
  ['one of two wrong', { redirect_uris: [LOCAL, 'ftp://x.example.com/'] }, 'invalid_redirect_uri'],
])('refuses %s', async (_, body, code) => {
  expect(await register(body)).toEqual({ status: 400, body: { error: code, error_description: expect.any(String) } });
});

it('refuses what is no JSON, and what is too large', async () => {
  const text = JSON.stringify({ redirect_uris: [LOCAL] });
  expect((await register(text, { 'content-type': 'text/plain' })).body.error).toBe('invalid_client_metadata');
  const large = await register({ redirect_uris: [LOCAL], software_id: 'x'.repeat(20_000) });
  expect(large).toMatchObject({ status: 413, body: { error: 'invalid_client_metadata' } });
});

it('ignores what it does not know, and asks no address that it is given', async () => {
  const { status, body } = await register({
    ...{
      redirect_uris: [LOCAL, LOCAL],
      client_id: 'platform-cli',
      client_secret: 'mine',
      logo_uri: 'http://10.0.0.1/',
    },
    ...{ jwks_uri: 'http://169.254.169.254/', sector_identifier_uri: 'http://169.254.169.254/', scope: 'admin' },
    grant_types: ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'],
  });
  expect(status).toBe(201);
  expect(body).toEqual({
    ...{ client_id: expect.stringMatching(/^[0-9a-f]{32}$/), client_id_issued_at: expect.any(Number) },
    ...{ client_name: 'Unnamed program', redirect_uris: [LOCAL], grant_types: ['authorization_code'] },
    ...{ response_types: ['code'], token_endpoint_auth_method: 'none' },
  });
});

it('takes so many from one address within an hour, also at the same time', async () => {
  const from = { 'x-forwarded-for': '2001:db8:1:1::1' };
  const neighbour = { 'x-forwarded-for': '2001:db8:1:1:ffff::2' };
  const body = { redirect_uris: [LOCAL] };
  const all = await Promise.all(Array.from({ length: 24 }, (_, i) => register(body, i % 2 ? from : neighbour)));
  expect(all.filter(({ status }) => status === 201)).toHaveLength(20);
  expect(all.filter(({ status }) => status === 429)[0]?.body.error).toBe('temporarily_unavailable');
  expect((await register(body, { 'x-forwarded-for': '2001:db8:1:2::1' })).status).toBe(201);
});

it('forgets clients that nobody uses', async () => {
  const { body } = await register({ redirect_uris: [LOCAL] });
  const ctx = makeContext(service.platform, {
    ...{ request_id: 'test', address: '', user_agent: '', project_header: undefined },
  });
  expect(await isSelfRegistered(ctx, body.client_id)).toBe(true);
  const used = await register({ redirect_uris: [LOCAL] });
  const client = await openClient(service, used.body.client_id);
  await client.connect(person);
  await service.sql(`update oauth_records set expires_at = expires_at - interval '50 hours' where kind = 'Client'`);
  const gone = await person.open((await (await openClient(service, body.client_id)).ask()).url);
  expect(gone.status).toBe(400);
  const retention = RETENTIONS.find(({ table }) => table === 'oauth_records')!;
  await sweep(service.platform.database as never, retention);
  expect(await isSelfRegistered(ctx, body.client_id)).toBe(false);
  expect((await person.open((await client.ask()).url)).title).toContain('Allow');
});
