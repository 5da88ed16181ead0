// Clients that the operator registers, with openid-client as the program.
import { isRedirectUri } from '../../../core/accounts/oauth';
import {
  createOauthClient,
  deleteOauthClient,
  listOauthClients,
  type OauthClient,
} from '../../../models/identity/oauth/client';
import { makeContext } from '../../../server/platform/context';
import { startService, type TestService } from '../../support/service';
import { logIn, newPerson, type Person } from '../../support/identity/person';

let service: TestService;
let person: Person;
let website: OauthClient;

const ctxOf = ({ platform }: TestService): ReturnType<typeof makeContext> =>
  makeContext(platform, { request_id: 'test', address: '', user_agent: '', project_header: undefined });

beforeAll(async () => {
  service = await startService();
  person = await newPerson(service, 'website@example.com', 'owner');
  website = await createOauthClient(ctxOf(service), {
    client_name: 'Website',
    redirect_uris: ['https://app.example.com/callback'],
  });
});
afterAll(() => service.close());

it.each([
  ['https://app.example.com/callback', true],
  ['http://127.0.0.1/callback', true],
  ['com.example.app:/callback', true],
  ['http://app.example.com/callback', false],
  ['https://localhost/callback', false],
  ['https://app.example.com/#x', false],
  ['https://user@app.example.com/', false],
  ['javascript:alert(1)', false],
  ['app:/callback', false],
  ['', false],
])('%s is an address for codes: %s', (uri, expected) => {
  expect(isRedirectUri(uri)).toBe(expected);
});

it('acts for people until it is deleted, at its one address', async () => {
  const oidc = await import('openid-client');
  const config = await oidc.discovery(new URL(service.url), website.client_id, undefined, oidc.None(), {
    algorithm: 'oauth2',
    execute: [oidc.allowInsecureRequests],
  });
  const verifier = oidc.randomPKCECodeVerifier();
  const state = oidc.randomState();
  const parameters = {
    ...{ redirect_uri: 'https://app.example.com/callback', scope: 'read', state },
    ...{ code_challenge: await oidc.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' },
  };
  const consent = await logIn(person, await person.open(oidc.buildAuthorizationUrl(config, parameters).href));
  expect(consent.html).toContain('app.example.com asks for access as Website.');
  const back = await person.submit(consent, { action: 'allow' });
  const tokens = await oidc.authorizationCodeGrant(config, new URL(back.url), {
    ...{ pkceCodeVerifier: verifier, expectedState: state },
  });
  const refreshed = await oidc.refreshTokenGrant(config, tokens.refresh_token as string);
  const me = (): ReturnType<TestService['call']> =>
    service.call('GET', '/v2/me', { key: refreshed.access_token, project: null });
  expect((await me()).status).toBe(200);
  const other = oidc.buildAuthorizationUrl(config, { ...parameters, redirect_uri: 'https://app.example.com/other' });
  expect((await person.open(other.href)).status).toBe(400);
  const device = await oidc.initiateDeviceAuthorization(config, { scope: 'read' });
  expect(device.user_code).toHaveLength(9);
  expect((await listOauthClients(ctxOf(service))).map(({ client_name }) => client_name)).toEqual([
    'Command line',
    'Website',
  ]);
  expect(await deleteOauthClient(ctxOf(service), website.client_id)).toBe(true);
  expect((await me()).status).toBe(401);
  expect((await person.open(oidc.buildAuthorizationUrl(config, parameters).href)).status).toBe(400);
  expect(await deleteOauthClient(ctxOf(service), website.client_id)).toBe(false);
});
