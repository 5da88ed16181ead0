// The device grant (RFC 8628): a program without a browser, and a person with one.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { OAUTH_PATHS } from '../../../core/accounts/oauth';
import { findRecord, saveRecord } from '../../../models/identity/oauth/records';
import { withinOneMinute } from '../../support/processes/within_one_minute';
import { startService, type TestService } from '../../support/service';
import { openClient, type Client } from './client';
import { logIn, newPerson, visitor, type Page, type Person } from '../../support/identity/person';

const GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

let service: TestService;
let client: Client;
let person: Person;

beforeAll(async () => {
  service = await startService({ settings: { RATE_LIMIT_FAILED_AUTH: '20' } });
  person = await newPerson(service, 'device@example.com', 'owner');
  client = await openClient(service);
});
afterAll(() => service.close());

interface Begun {
  device_code: string;
  user_code: string;
  verification_uri: string;
  verification_uri_complete: string;
  expires_in: number;
}

interface Polled {
  error?: string;
  access_token?: string;
  refresh_token?: string;
}

const post = (path: string, fields: Record<string, string>): Promise<Response> =>
  fetch(service.url + path, {
    method: 'POST',
    body: new URLSearchParams({ client_id: 'platform-cli', ...fields }),
  });

async function begin(fields: Record<string, string> = {}): Promise<Begun> {
  const answer = await post(OAUTH_PATHS.deviceAuthorization, {
    scope: 'read logs:read',
    device_name: 'build <b>box</b>',
    ...fields,
  });
  return (await answer.json()) as Begun;
}

const poll = async ({ device_code }: Begun): Promise<Polled> =>
  (await post(OAUTH_PATHS.token, { grant_type: GRANT, device_code })).json() as Promise<Polled>;

/** The time that a device has to wait is over. */
const wait = (): Promise<unknown> =>
  service.sql(`update oauth_records set polled_at = polled_at - interval '1 hour' where kind = 'DeviceCode'`);

async function enter(who: Person, code: string): Promise<Page> {
  return who.submit(await who.open(`${service.url}/oauth/device`), { user_code: code });
}

async function allow(who: Person, begun: Begun): Promise<Page> {
  let page = await who.submit(await enter(who, begun.user_code), { confirm: 'yes' });
  if (page.title === 'Log in') page = await logIn(who, page);
  return who.submit(page, { action: 'allow' });
}

it('gives tokens to the device once the person has allowed it', async () => {
  const begun = await begin();
  expect(begun).toMatchObject({
    user_code: expect.stringMatching(/^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/),
    verification_uri: `${service.url}/oauth/device`,
    expires_in: 600,
  });
  expect((await poll(begun)).error).toBe('authorization_pending');
  const confirm = await enter(person, begun.user_code.toLowerCase().replace('-', ' '));
  expect(confirm.html).toContain(`<code>${begun.user_code}</code>`);
  expect(confirm.html).toContain('build &lt;b&gt;box&lt;/b&gt;');
  expect(confirm.html).toContain('Continue only if you began this yourself just now, on a device in front of you.');
  expect(confirm.html).not.toContain('<script');
  const login = await person.submit(confirm, { confirm: 'yes' });
  const consent = await logIn(person, login);
  expect(consent.html).toContain('A device asks for access as Command line.');
  expect(consent.html).toContain('Continue only if you began this yourself');
  const done = await person.submit(consent, { action: 'allow' });
  expect([done.status, done.title]).toEqual([200, 'Device logged in']);
  await wait();
  const tokens = await poll(begun);
  const { body } = await service.call('GET', '/v2/me', { key: tokens.access_token, project: null });
  expect(body.token).toMatchObject({ kind: 'oauth', scopes: ['read', 'logs:read'] });
  expect((await client.refresh(tokens.refresh_token as string)).access_token).toBeTruthy();
  await wait();
  // What comes twice ends what the first got.
  expect((await poll(begun)).error).toBe('invalid_grant');
  expect((await service.call('GET', '/v2/me', { key: tokens.access_token, project: null })).status).toBe(401);
});

it('a device that asks too often has to wait longer each time', async () => {
  const begun = await begin();
  expect((await poll(begun)).error).toBe('authorization_pending');
  expect((await poll(begun)).error).toBe('slow_down');
  expect((await poll(begun)).error).toBe('slow_down');
  const [row] = await service.sql(`select max(poll_seconds) as seconds from oauth_records where kind = 'DeviceCode'`);
  expect(row.seconds).toBe(15);
  await allow(person, begun);
  expect((await poll(begun)).error).toBe('slow_down');
  await wait();
  expect((await poll(begun)).access_token).toBeTruthy();
});

it('the address with the code sends nothing by itself', async () => {
  const begun = await begin();
  const page = await person.open(begun.verification_uri_complete);
  expect(page.html).toContain(`value="${begun.user_code}"`);
  expect(page.html).not.toContain('<script');
  expect((await poll(begun)).error).toBe('authorization_pending');
  expect((await person.submit(page, {})).html).toContain(`<code>${begun.user_code}</code>`);
});

it('a person who did not begin it refuses, and the device hears of it', async () => {
  const begun = await begin();
  const page = await person.submit(await enter(person, begun.user_code), { abort: 'yes' });
  expect(page.html).toContain('The device was not logged in.');
  expect((await poll(begun)).error).toBe('access_denied');
  const second = await begin();
  let consent = await person.submit(await enter(person, second.user_code), { confirm: 'yes' });
  if (consent.title === 'Log in') consent = await logIn(person, consent);
  await person.submit(consent, { action: 'deny' });
  expect((await poll(second)).error).toBe('access_denied');
});

/** Ten minutes later, for a device that waits. */
async function age(deviceCode: string): Promise<void> {
  const { database: sql, secrets } = service.platform;
  const payload = await findRecord({ sql, secrets }, 'DeviceCode', deviceCode, 'read');
  const ended = { ...payload, exp: Math.floor(Date.now() / 1000) - 1 };
  await saveRecord({ sql, secrets }, 'DeviceCode', deviceCode, ended, -1);
}

it('codes are of one use, for ten minutes', async () => {
  const begun = await begin();
  await allow(person, begun);
  expect((await enter(person, begun.user_code)).html).toContain('already used');
  const old = await begin();
  expect(old.expires_in).toBe(600);
  await age(old.device_code);
  expect((await enter(person, old.user_code)).html).toContain('expired');
  expect((await poll(old)).error).toBe('expired_token');
  const forged = await visitor(service).submit(await person.open(`${service.url}/oauth/device`), { user_code: 'X' });
  expect([forged.status, forged.html]).toEqual([404, expect.stringContaining('Open it again')]);
});

it('refuses what does not exist', async () => {
  expect(await begin({ scope: 'root' })).toMatchObject({ error: 'invalid_scope' });
  expect(await begin({ client_id: 'somebody' })).toMatchObject({ error: 'invalid_client' });
});

it('works with curl and a browser alone', async () => {
  const curl = async (path: string, ...fields: string[]): Promise<Record<string, string>> => {
    const data = fields.flatMap((field) => ['--data-urlencode', field]);
    const { stdout } = await promisify(execFile)('curl', ['-sS', service.url + path, ...data]);
    return JSON.parse(stdout);
  };
  const begun = await curl(OAUTH_PATHS.deviceAuthorization, 'client_id=platform-cli', 'scope=read');
  await allow(person, begun as unknown as Begun);
  const { access_token, scope } = await curl(
    ...([OAUTH_PATHS.token, 'client_id=platform-cli', `grant_type=${GRANT}`] as const),
    `device_code=${begun.device_code}`,
  );
  expect(scope).toBe('read');
  const { stdout } = await promisify(execFile)('curl', [
    ...['-sS', '-H', `Authorization: Bearer ${access_token}`, `${service.url}/v2/me`],
  ]);
  expect(JSON.parse(stdout).user.email).toBe(person.email);
});

it('guesses at codes are counted', async () => {
  const statuses = new Set<number>();
  await withinOneMinute(5_000);
  for (let turn = 0; turn < 30; turn += 1) statuses.add((await enter(person, 'BBBB-BBBB')).status);
  expect([...statuses].sort()).toEqual([200, 429]);
});
