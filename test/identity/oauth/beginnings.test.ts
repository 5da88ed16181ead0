// What strangers may do at the authorisation server before anybody is known, and what behind https protects a browser.
import { CookieJar } from 'tough-cookie';
import { OAUTH_PATHS } from '../../../core/accounts/oauth';
import { withinOneMinute } from '../../support/processes/within_one_minute';
import { startService, type TestService } from '../../support/service';
import { openClient, type Client } from './client';
import { newPerson, visitor, type Person } from '../../support/identity/person';

const ALLOWED = 4;

let service: TestService;
let client: Client;
let person: Person;

beforeAll(async () => {
  const settings = { RATE_LIMIT_FAILED_AUTH: String(ALLOWED), TRUST_PROXY: '1', OAUTH_REGISTRATION: '1' };
  service = await startService({ settings });
  person = await newPerson(service, 'begins@example.com', 'owner');
  client = await openClient(service);
});
afterAll(() => service.close());

const rows = async (): Promise<number> =>
  (await service.sql<{ count: number }>('select count(*)::int as count from oauth_records'))[0]?.count as number;

function post(path: string, fields: Record<string, string>, address: string): Promise<Response> {
  const body = new URLSearchParams({ client_id: 'platform-cli', ...fields });
  return fetch(service.url + path, { method: 'POST', body, headers: { 'x-forwarded-for': address } });
}

describe('beginnings', () => {
  beforeEach(() => withinOneMinute(10_000), 60_000);

  it.each([
    ['devices', (address: string) => post(OAUTH_PATHS.deviceAuthorization, { scope: 'read' }, address)],
    [
      'authorisations',
      async (address: string) =>
        fetch((await client.ask()).url, { redirect: 'manual', headers: { 'x-forwarded-for': address } }),
    ],
    [
      'pages for the codes of devices',
      (address: string) => fetch(`${service.url}/oauth/device`, { headers: { 'x-forwarded-for': address } }),
    ],
  ])('of %s are counted per address, and write no rows beyond', async (name, begin) => {
    const host = { devices: 1, authorisations: 2 }[name] ?? 3;
    const statuses: number[] = [];
    for (let turn = 0; turn < ALLOWED * 2; turn += 1)
      statuses.push((await begin(`2001:db8:0:${host}::${turn.toString(16)}`)).status);
    const before = await rows();
    for (let turn = 0; turn < 20; turn += 1)
      statuses.push((await begin(`2001:db8:0:${host}:ffff::${turn.toString(16)}`)).status);
    expect(await rows()).toBe(before);
    expect(statuses.filter((status) => status === 429)).toHaveLength(20);
    expect((await begin(`198.51.100.${host}`)).status).toBeLessThan(400);
  });
});

describe('wrong tokens', () => {
  it('do not keep the right ones of the same address away', async () => {
    await withinOneMinute(10_000);
    const { refresh_token } = await client.connect(person);
    const refresh = (token: string): Promise<Response> =>
      post(OAUTH_PATHS.token, { grant_type: 'refresh_token', refresh_token: token }, '198.51.100.50');
    const statuses: number[] = [];
    for (let turn = 0; turn < ALLOWED + 3; turn += 1) statuses.push((await refresh(`wrong${turn}`)).status);
    expect(statuses).toEqual([...Array<number>(ALLOWED).fill(400), 429, 429, 429]);
    const answer = await refresh(refresh_token as string);
    expect([answer.status, Object.keys((await answer.json()) as object)]).toEqual([
      200,
      expect.arrayContaining(['refresh_token']),
    ]);
    const other = await post(OAUTH_PATHS.deviceAuthorization, { scope: 'read' }, '198.51.100.50');
    expect(other.status).toBe(200);
  });
});

describe('pages', () => {
  it.each(['/oauth/device/xyz', '/oauth/authorize/xyz', '/oauth/interaction/xyz'])(
    '%s of nobody says that it has expired',
    async (path) => {
      const stranger = visitor(service);
      const first = await stranger.open(service.url + path);
      expect([first.status, first.title]).toEqual([expect.any(Number), expect.stringMatching(/expired|did not work/)]);
      expect([400, 404]).toContain(first.status);
      await stranger.open(`${service.url}/oauth/device`);
      expect([400, 404]).toContain((await stranger.open(service.url + path)).status);
      const forged = { cookie: (await stranger.cookies()).replace(/oauth_session\.sig=[^;]*/, 'x=y') };
      expect([400, 404]).toContain((await fetch(service.url + path, { headers: forged })).status);
    },
  );
});

describe('redirect URIs', () => {
  it.each([
    'https://*/cb',
    'https://*.example.com/cb',
    'https://app.*.example.com/cb',
    'https://%2a.example.com/cb',
    'https://%2A/cb',
    'https://app.example.com/*',
    'https://app.example.com/cb?next=*',
    'https://app.example.com\\@evil.example/cb',
    'https://-.example.com/cb',
    'https://a..example.com/cb',
    'http://127.0.0.1/*',
    'https://{tenant}.example.com/cb',
    'https://$host/cb',
    'https://ex(am)ple.com/cb',
  ])('%s is no address', async (uri) => {
    const body = JSON.stringify({ redirect_uris: [uri], client_name: 'Guess' });
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(service.url + OAUTH_PATHS.register, { method: 'POST', body, headers });
    expect([answer.status, await answer.json()]).toEqual([
      400,
      { error: 'invalid_redirect_uri', error_description: expect.stringContaining('wildcard') },
    ]);
  });

  it.each(['https://app.example.com/cb', 'https://xn--bcher-kva.example/cb', 'https://[2001:db8::1]:8443/cb'])(
    '%s is one',
    async (uri) => {
      const body = JSON.stringify({ redirect_uris: [uri] });
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(service.url + OAUTH_PATHS.register, { method: 'POST', body, headers });
      expect(answer.status).toBe(201);
    },
  );
});

describe('behind https', () => {
  const BASE = 'https://platform.example.com';
  let secure: TestService;
  beforeAll(async () => {
    secure = await startService({ settings: { BASE_URL: BASE } });
  });
  afterAll(() => secure.close());

  /** A browser that keeps cookies by the rules of their prefixes, behind a proxy that ends TLS. */
  const browse = (): { jar: CookieJar; open(url: string, form?: Record<string, string>): Promise<Page> } => {
    const jar = new CookieJar(undefined, { prefixSecurity: 'strict' });
    const open = async (url: string, form?: Record<string, string>): Promise<Page> => {
      const headers = { cookie: await jar.getCookieString(url), accept: 'text/html', origin: BASE };
      const init = form && { method: 'POST', body: new URLSearchParams(form) };
      const answer = await fetch(url.replace(BASE, secure.url), { ...init, headers, redirect: 'manual' });
      const cookies = answer.headers.getSetCookie();
      for (const line of cookies) await jar.setCookie(line, url);
      const html = await answer.text();
      const location = answer.headers.get('location');
      const next = location ? new URL(location, url).href : url;
      return location && next.startsWith(BASE) ? open(next) : { url: next, status: answer.status, html, cookies };
    };
    return { jar, open };
  };
  interface Page {
    url: string;
    status: number;
    html: string;
    cookies: string[];
  }
  const authorize = async (): Promise<string> => (await client.ask()).url.replace(service.url, BASE);

  it('each cookie is of this host alone, and authorisations in several tabs do not disturb each other', async () => {
    const { email } = await newPerson(secure, 'tabs@example.com', 'owner');
    const { jar, open } = browse();
    const first = await open(await authorize());
    const second = await open(await authorize());
    for (const line of [...first.cookies, ...second.cookies]) expect(line).toMatch(/^__Host-.*; path=\/; secure/i);
    const kept = (await jar.getCookies(`${BASE}/`)).map(({ key }) => key);
    expect(kept.filter((name) => !name.startsWith('__Host-'))).toEqual([]);
    expect(kept.filter((name) => /^__Host-oauth_interaction-[\w-]+$/.test(name))).toHaveLength(2);
    const consent = await open(first.url, { email, password: 'a long enough password', action: 'login' });
    expect(consent.html).toContain('to act for you?');
    for (const page of [first, second]) {
      const back = await open(page.url, { action: 'allow', scope: 'read', all_projects: 'yes' });
      expect(new URL(back.url).searchParams.get('code')).toBeTruthy();
    }
  });

  it('a cookie that another host of the domain has set is passed over', async () => {
    const { jar, open } = browse();
    const begun = await open(await authorize());
    const forged = (await jar.getCookieString(begun.url)).replace(/__Host-(oauth_\w+?)-[\w-]+?(\.sig)?=/g, '$1$2=');
    const answer = await fetch(begun.url.replace(BASE, secure.url), { headers: { cookie: forged } });
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('This page has expired')]);
  });

  it('a page that begins very many does not fill the headers of the browser', async () => {
    const { jar, open } = browse();
    for (let turn = 0; turn < 30; turn += 1) await open(await authorize());
    expect((await jar.getCookieString(`${BASE}/`)).length).toBeLessThan(3_000);
    expect((await open((await open(await authorize())).url)).status).toBe(200);
  });
});
