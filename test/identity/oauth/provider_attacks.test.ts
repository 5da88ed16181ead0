// What providers and others do wrong, or on purpose: answers that are not for us, links of somebody else, a provider
// that is gone. Nobody is logged in then.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ownPath } from '../../../core/mail/account_paths';
import { newUser } from '../../support/identity/browser';
import { startService, type TestService } from '../../support/service';
import { CLIENT_SECRET, openForeignProvider, pressProvider, type ForeignProvider } from './foreign_provider';
import { visitor, type Page, type Person } from '../../support/identity/person';

type Visitor = Pick<Person, 'open' | 'submit' | 'cookies'>;

/** A provider that says whatever it is told to. */
interface Liar {
  issuer: string;
  /** Changes the claims of the next tokens, and what stands around them. */
  claims: Record<string, unknown>;
  alg: 'ES256' | 'none' | 'other key' | 'HS256';
  metadata: Record<string, unknown>;
  /** Asked for tokens so many times. */
  asked: number;
  close(): void;
}

const EMAIL = 'victim@example.com';

let liar: Liar;
let honest: ForeignProvider;
let service: TestService;

async function openLiar(): Promise<Liar> {
  const jose = await import('jose');
  const [key, other] = [
    await jose.generateKeyPair('ES256', { extractable: true }),
    await jose.generateKeyPair('ES256', { extractable: true }),
  ];
  const jwk = { ...(await jose.exportJWK(key.publicKey)), kid: 'one', alg: 'ES256', use: 'sig' };
  const nonces = { last: '' };
  const sign = async (payload: Record<string, unknown>): Promise<string> => {
    if (self.alg === 'none') return new jose.UnsecuredJWT(payload).encode();
    const token = new jose.SignJWT(payload).setProtectedHeader({
      alg: self.alg === 'HS256' ? 'HS256' : 'ES256',
      kid: 'one',
    });
    if (self.alg === 'HS256') return token.sign(new TextEncoder().encode(CLIENT_SECRET));
    return token.sign(self.alg === 'other key' ? other.privateKey : key.privateKey);
  };
  const answers: Record<string, (url: URL) => Promise<unknown>> = {
    '/.well-known/openid-configuration': async () => ({
      ...{
        issuer: self.issuer,
        authorization_endpoint: `${self.issuer}/authorize`,
        token_endpoint: `${self.issuer}/token`,
      },
      ...{ jwks_uri: `${self.issuer}/jwks`, id_token_signing_alg_values_supported: ['ES256'] },
      ...self.metadata,
    }),
    '/jwks': async () => ({ keys: [jwk] }),
    '/token': async () => {
      self.asked += 1;
      const seconds = Math.floor(Date.now() / 1000);
      const usual = { iss: self.issuer, aud: 'platform', sub: 'victim', iat: seconds, exp: seconds + 60 };
      const person = { email: EMAIL, email_verified: true, nonce: nonces.last };
      const id_token = await sign({ ...usual, ...person, ...self.claims });
      return { access_token: 'an access token of theirs', token_type: 'Bearer', id_token };
    },
  };
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', self.issuer);
    // The browser does not come here: the test says what it would have been asked.
    if (url.pathname === '/authorize') nonces.last = url.searchParams.get('nonce') ?? '';
    void (answers[url.pathname]?.(url) ?? Promise.resolve({})).then((json) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(json));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  const self: Liar = { issuer, claims: {}, alg: 'ES256', metadata: {}, asked: 0, close };
  return self;
}

const settingsOf = (name: string, issuer: string): Record<string, string> => ({
  ...{ [`LOGIN_${name}_ISSUER`]: issuer, [`LOGIN_${name}_CLIENT_ID`]: 'platform' },
  [`LOGIN_${name}_CLIENT_SECRET`]: CLIENT_SECRET,
});

beforeAll(async () => {
  liar = await openLiar();
  honest = await openForeignProvider('honest');
  service = await startService({
    settings: {
      ...{ ...settingsOf('LIAR', liar.issuer), ...honest.settings('honest'), LOG_LEVEL: 'debug' },
      ...settingsOf('GONE', 'http://127.0.0.1:1'),
    },
  });
  const { email } = await newUser(service, EMAIL);
  await service.sql('update users set password_hash = null where email = $1', [email]);
});
beforeEach(async () => {
  Object.assign(liar, { claims: {}, alg: 'ES256', metadata: {} });
  await service.sql('delete from linked_logins');
});
afterAll(async () => {
  await service.close();
  await honest.close();
  liar.close();
});

/** Begins, and answers the address that an honest browser would come back to. */
async function begin(browser: Visitor, name = 'liar', fields: Record<string, string> = {}): Promise<URL> {
  const { url } = await pressProvider(browser, await browser.open(`${service.url}/login`), name, fields);
  await fetch(url);
  const back = new URL(`${service.url}/login/with/${name}/callback`);
  back.searchParams.set('code', 'a code of theirs');
  back.searchParams.set('state', new URL(url).searchParams.get('state') ?? '');
  return back;
}

async function expectNobody(browser: Visitor, page: Page, status: number): Promise<void> {
  expect(page.status).toBe(status);
  expect(page.title).toMatch(/You are not logged in|This did not work/);
  expect(await browser.cookies()).not.toContain('platform_session');
  expect(await service.sql('select 1 from linked_logins')).toEqual([]);
}

it('what they say is taken where all of it is right', async () => {
  const browser = visitor(service);
  await browser.open((await begin(browser)).href);
  expect(await browser.cookies()).toContain('platform_session');
});

const past = Math.floor(Date.now() / 1000) - 3600;
it.each<[string, Partial<Liar>]>([
  ['is for another client', { claims: { aud: 'another' } }],
  ['is for several clients, none of them named', { claims: { aud: ['platform', 'another'] } }],
  ['is of another issuer', { claims: { iss: 'https://accounts.example.com' } }],
  ['is over', { claims: { iat: past, exp: past + 60 } }],
  ['is not yet', { claims: { nbf: past + 7200 } }],
  ['answers another request', { claims: { nonce: 'of another request' } }],
  ['has no nonce', { claims: { nonce: undefined } }],
  ['has no subject', { claims: { sub: undefined } }],
  ['is not signed', { alg: 'none' }],
  ['is signed by somebody else', { alg: 'other key' }],
  ['is signed with the secret of the client', { alg: 'HS256' }],
])('a token of identity that %s logs nobody in', async (_, lie) => {
  Object.assign(liar, lie);
  const browser = visitor(service);
  await expectNobody(browser, await browser.open((await begin(browser)).href), 400);
});

it.each<[string, Record<string, unknown>]>([
  ['not said', { email_verified: undefined }],
  ['said as a text', { email_verified: 'true' }],
  ['denied', { email_verified: false }],
])('an address whose verification is %s makes nobody its user', async (_, claims) => {
  liar.claims = claims;
  const browser = visitor(service);
  await expectNobody(browser, await browser.open((await begin(browser)).href), 403);
});

it.each<[string, unknown, boolean]>([
  ['one factor', ['pwd'], true],
  ['nothing of factors', undefined, true],
  ['a text for a list', 'mfa', true],
  ['two factors', ['pwd', 'otp', 'mfa'], false],
])('of a provider that says %s, two-factor is asked for here: %s %s', async (_, amr, isAsked) => {
  liar.claims = { amr };
  await service.sql('update users set totp_confirmed_at = now() where email = $1', [EMAIL]);
  const browser = visitor(service);
  const page = await browser.open((await begin(browser)).href);
  await service.sql('update users set totp_confirmed_at = null where email = $1', [EMAIL]);
  expect(page.title === 'Two-factor code').toBe(isAsked);
  expect((await browser.cookies()).includes('platform_session')).toBe(!isAsked);
});

it('an answer works once, in the browser that began, at the provider that it is of', async () => {
  const browser = visitor(service);
  const back = await begin(browser);
  const asked = liar.asked;
  await expectNobody(visitor(service), await visitor(service).open(back.href), 404);
  const mixed = await browser.open(back.href.replace('/with/liar/', '/with/honest/'));
  await expectNobody(browser, mixed, 404);
  expect(liar.asked).toBe(asked);
  const again = await begin(browser);
  await browser.open(again.href);
  expect(await browser.cookies()).toContain('platform_session');
  expect((await browser.open(again.href)).status).toBe(404);
  expect(liar.asked).toBe(asked + 1);
});

it('an answer of another issuer is not redeemed (RFC 9207)', async () => {
  const browser = visitor(service);
  const back = await begin(browser);
  const asked = liar.asked;
  back.searchParams.set('iss', 'https://accounts.example.com');
  await expectNobody(browser, await browser.open(back.href), 400);
  expect(liar.asked).toBe(asked);
});

it.each<[string, string]>([
  ['a refusal', 'error=access_denied&error_description=<script>alert(1)</script>'],
  ['an error that is none', 'error=%0a%3Cb%3E'],
  ['two codes', 'code=a&code=b'],
  ['nothing', ''],
])('%s leads to a page that says so', async (_, query) => {
  const browser = visitor(service);
  const back = await begin(browser);
  const state = back.searchParams.get('state') ?? '';
  const page = await browser.open(`${back.origin}${back.pathname}?${query}&state=${encodeURIComponent(state)}`);
  await expectNobody(browser, page, 400);
  expect(page.html).not.toMatch(/<script|<b>/);
});

it('a page of another site cannot begin a login, nor unlink one', async () => {
  const browser = visitor(service);
  for (const path of ['/login/with/liar', '/account/logins', '/login'])
    expect(
      await browser.submit(
        { url: service.url + path, html: '', status: 200, title: '', headers: new Headers() },
        {},
        {
          origin: 'https://evil.example.com',
        },
      ),
    ).toMatchObject({ status: 403 });
});

it('a provider that cannot be reached is named on the page, and nothing is left behind', async () => {
  const browser = visitor(service);
  const { page } = await pressProvider(browser, await browser.open(`${service.url}/login`), 'gone');
  expect(page).toMatchObject({ status: 503, html: expect.stringContaining('Gone cannot be reached at the moment.') });
  const { url } = await pressProvider(browser, await browser.open(`${service.url}/login`), 'honest');
  honest.people.set('a', { email: EMAIL, email_verified: true });
  const back = await honest.logIn(url, 'a');
  await honest.close();
  await expectNobody(browser, await browser.open(back), 503);
});

it('an issuer that is configured as another one, or leads into the network of the platform, is not used', async () => {
  const other = await openLiar();
  const inside = await openLiar();
  const closed = await startService({
    settings: { ...settingsOf('OTHER', other.issuer), ...settingsOf('INSIDE', inside.issuer) },
  });
  try {
    other.metadata = { issuer: 'https://accounts.example.com' };
    // Loopback is for the issuer itself only, which the operator has named.
    inside.metadata = { token_endpoint: `${liar.issuer}/token` };
    const browser = visitor(closed);
    const login = await browser.open(`${closed.url}/login`);
    expect((await pressProvider(browser, login, 'other')).page.status).toBe(400);
    const { url } = await pressProvider(browser, login, 'inside');
    const state = new URL(url).searchParams.get('state') ?? '';
    const asked = liar.asked;
    const page = await browser.open(
      `${closed.url}/login/with/inside/callback?code=x&state=${encodeURIComponent(state)}`,
    );
    expect(page.status).toBe(503);
    expect(liar.asked).toBe(asked);
  } finally {
    await closed.close();
    other.close();
    inside.close();
  }
});

it.each([
  ['/account/logins?x=1', '/account/logins?x=1'],
  ['//evil.example.com', '/'],
  ['/\\evil.example.com', '/'],
  ['/.//evil.example.com', '/'],
  ['/\t/evil.example.com', '/'],
  ['https://evil.example.com/', '/'],
  ['javascript:alert(1)', '/'],
  ['/%2f/evil', '/%2f/evil'],
  ['/login/with/liar', '/'],
  ['', '/'],
  [`/${'x'.repeat(500)}`, '/'],
])('after a login, %j leads to %s', (asked, path) => {
  expect(ownPath(asked)).toBe(path);
});

it('a login leads on to a path of this server, whatever was asked for', async () => {
  const browser = visitor(service);
  const back = await begin(browser, 'liar', { return_to: '//evil.example.com/' });
  expect(new URL((await browser.open(back.href)).url).origin).toBe(service.url);
});

it('secrets and codes are in no table', async () => {
  await begin(visitor(service));
  const rows = JSON.stringify(await service.sql('select * from login_attempts'));
  expect(rows).toContain('browser_hash');
  for (const secret of [CLIENT_SECRET, 'verifier', 'liar']) expect(rows).not.toContain(secret);
});
