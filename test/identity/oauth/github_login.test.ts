// Logins at GitHub, which speaks plain OAuth: a peer answers as its documentation shows.
// https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { newUser } from '../../support/identity/browser';
import { startService, type TestService } from '../../support/service';
import { CLIENT_SECRET, pressProvider } from './foreign_provider';
import { visitor, type Page, type Person } from '../../support/identity/person';

interface Peer {
  url: string;
  user: object | null;
  emails: object[];
  /** What the next request for a token is answered. */
  token: object;
  forms: URLSearchParams[];
  close(): void;
}

const EMAIL = 'octocat@example.com';
const USER = { login: 'octocat', id: 583231, name: 'The Octocat', two_factor_authentication: true };

let peer: Peer;
let service: TestService;

async function openPeer(): Promise<Peer> {
  const read = async (request: IncomingMessage): Promise<string> => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    return text;
  };
  const server = createServer(async (request, response) => {
    const answer = (status: number, json: unknown): void =>
      void response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(json));
    if (request.url === '/login/oauth/access_token') {
      self.forms.push(new URLSearchParams(await read(request)));
      return answer(200, self.token);
    }
    const isAllowed = request.headers.authorization === 'Bearer gho_theirs' && Boolean(request.headers['user-agent']);
    if (!isAllowed) return answer(401, { message: 'Bad credentials' });
    if (request.url === '/api/v3/user') return self.user ? answer(200, self.user) : answer(500, {});
    return request.url === '/api/v3/user/emails' ? answer(200, self.emails) : answer(404, { message: 'Not Found' });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const self: Peer = {
    ...{ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, user: USER, emails: [], forms: [] },
    token: {},
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
  return self;
}

beforeAll(async () => {
  peer = await openPeer();
  service = await startService({
    settings: {
      ...{ LOGIN_HUB_ISSUER: `${peer.url}/`, LOGIN_HUB_TYPE: 'github', LOGIN_HUB_TITLE: 'GitHub' },
      ...{ LOGIN_HUB_CLIENT_ID: 'Iv1.8a61f9b3a7aba766', LOGIN_HUB_CLIENT_SECRET: CLIENT_SECRET },
    },
  });
  await newUser(service, EMAIL);
});
beforeEach(async () => {
  await service.sql('delete from linked_logins');
  await service.sql('update users set password_hash = null');
  Object.assign(peer, {
    ...{ user: USER, token: { access_token: 'gho_theirs', scope: 'read:user,user:email', token_type: 'bearer' } },
    emails: [
      { email: 'old@example.com', verified: true, primary: false, visibility: null },
      { email: 'Octocat@Example.com', verified: true, primary: true, visibility: 'private' },
    ],
  });
});
afterAll(async () => {
  await service.close();
  peer.close();
});

async function logInThere(): Promise<{ browser: Pick<Person, 'cookies'>; asked: URL; page: Page }> {
  const browser = visitor(service);
  const { url } = await pressProvider(browser, await browser.open(`${service.url}/login`), 'hub', {
    return_to: '/account/logins',
  });
  const asked = new URL(url);
  const state = encodeURIComponent(asked.searchParams.get('state') ?? '');
  const page = await browser.open(`${service.url}/login/with/hub/callback?code=a1b2c3&state=${state}`);
  return { browser, asked, page };
}

it('says by its API who somebody is, and the primary address counts', async () => {
  const { asked, page } = await logInThere();
  expect(`${asked.origin}${asked.pathname}`).toBe(`${peer.url}/login/oauth/authorize`);
  expect(Object.fromEntries(asked.searchParams)).toMatchObject({
    ...{ client_id: 'Iv1.8a61f9b3a7aba766', scope: 'read:user user:email', code_challenge_method: 'S256' },
    redirect_uri: `${service.url}/login/with/hub/callback`,
  });
  expect(page.html).toContain(`You are logged in as ${EMAIL}.`);
  expect(Object.fromEntries(peer.forms.at(-1) ?? [])).toMatchObject({
    ...{ code: 'a1b2c3', client_secret: CLIENT_SECRET, code_verifier: expect.stringMatching(/^[\w-]{43}$/) },
  });
  const [linked] = await service.sql('select issuer, subject from linked_logins');
  expect(linked).toEqual({ issuer: peer.url, subject: '583231' });
});

it.each<[string, Partial<Peer>, number]>([
  ['whose primary address is not verified', { emails: [{ email: EMAIL, verified: false, primary: true }] }, 403],
  ['whose address is not the primary one', { emails: [{ email: EMAIL, verified: true, primary: false }] }, 403],
  ['whose addresses are hidden', { emails: [] }, 403],
  ['who has no id', { user: { ...USER, id: '583231' } }, 400],
  ['of whom nothing is said', { user: null }, 400],
  ['whose code is refused with status 200', { token: { error: 'bad_verification_code' } }, 400],
])('somebody %s is not logged in', async (_, change, status) => {
  Object.assign(peer, change);
  const { browser, page } = await logInThere();
  expect(page).toMatchObject({ status, title: 'You are not logged in' });
  expect(await browser.cookies()).not.toContain('platform_session');
});
