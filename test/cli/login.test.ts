/** @user any */
// Logging in with the command line: device codes, a browser, keys; what is kept, renewed and revoked.
import * as fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { logIn, newPerson, type Person } from '../support/identity/person';
import { allow, buildCli, logInWith, openHome, type Home, type Running } from '../support/cli/svc';
import { startService, type TestService } from '../support/service';

let service: TestService;
let person: Person;
let home: Home;
beforeAll(async () => {
  buildCli();
  service = await startService();
  person = await newPerson(service, 'cli@example.com', 'owner');
});
afterAll(() => service?.close());
beforeEach(() => {
  home = openHome();
});
afterEach(() => home.remove());

const file = (): string => path.join(home.directory, '.config/svc/credentials.json');
async function allowDevice(running: Running): Promise<void> {
  const [, code = ''] = await running.until(/enter the code ([A-Z-]{9})/);
  const asked = await person.submit(await person.open(`${service.url}/oauth/device`), { user_code: code });
  await allow(person, await person.submit(asked, { confirm: 'yes' }));
}

async function logInHere(): Promise<void> {
  expect(await logInWith(home, service, person)).toMatchObject({ code: 0, stdout: '' });
}

const expire = (): void => {
  const all = home.credentials();
  const login = all.servers[service.url] as Record<string, unknown>;
  login.expires_at = Date.now() - 1000;
  fs.writeFileSync(file(), JSON.stringify(all));
};

test('a code on a page of the server logs in, and only the person can read what is kept', async () => {
  const running = home.start(['login', '--url', service.url]);
  await allowDevice(running);
  expect(await running.ended).toMatchObject({ code: 0, stdout: '' });
  expect(fs.statSync(file()).mode & 0o777).toBe(0o600);
  expect(fs.statSync(path.dirname(file())).mode & 0o777).toBe(0o700);
  expect(fs.readdirSync(path.dirname(file()))).toEqual(['credentials.json']);
  const me = JSON.parse(await home.output(['whoami', '--json']));
  expect(me).toMatchObject({ user: { email: 'cli@example.com' }, token: { kind: 'oauth' } });
  const days = (Date.parse(me.login_expires_at) - Date.now()) / 86_400_000;
  expect([days > 89, days < 91]).toEqual([true, true]);
  expect(await home.output(['whoami'])).toMatch(
    /\nvalid until\t\d{4}-\d\d-\d\d \d\d:\d\d UTC, in (89|90) days; each use/,
  );
  expect(me.token.scopes).toEqual(['read', 'write', 'deploy', 'env:read', 'env:write', 'logs:read']);
  expect(await home.output(['whoami', '--field', 'user.email'])).toBe('cli@example.com\n');
  const { access_token = '' } = home.credentials().servers[service.url] ?? {};
  expect(await home.svc(['logout'])).toMatchObject({ code: 0, stderr: `Logged out of ${service.url}.\n` });
  expect((await service.call('GET', '/v2/me', { key: access_token, project: null })).status).toBe(401);
  expect(home.credentials()).toEqual({ servers: {} });
  expect(await home.svc(['whoami', '--url', service.url])).toMatchObject({
    code: 3,
    stderr: `Error: You are not logged in at ${service.url}.\nRun: svc login --url ${service.url}\n`,
  });
});

test('a browser logs in over the loopback interface', async () => {
  const running = home.start(['login', '--browser', '--url', service.url], { env: { BROWSER: '/bin/true' } });
  const [url] = await running.until(/http\S+\/oauth\/authorize\?\S+/);
  const { searchParams } = new URL(url);
  expect(searchParams.get('code_challenge_method')).toBe('S256');
  const redirect = searchParams.get('redirect_uri') as string;
  expect((await fetch(`${redirect}?code=stolen&state=other`)).status).toBe(404);
  const answered = await allow(person, await person.open(url));
  expect(answered.url).toContain(redirect);
  const { status, text } = await get(answered.url);
  expect([status, text]).toEqual([200, 'You are logged in. You can close this page and return to the terminal.\n']);
  expect(await running.ended).toMatchObject({ code: 0 });
  expect(await home.output(['whoami', '--field', 'user.email'])).toBe('cli@example.com\n');
});

test('a refused login says so', async () => {
  const running = home.start(['login', '--browser', '--url', service.url], { env: { BROWSER: '/bin/true' } });
  const [url] = await running.until(/http\S+\/oauth\/authorize\?\S+/);
  let page = await person.open(url);
  if (page.title === 'Log in') page = await logIn(person, page);
  await get((await person.submit(page, { action: 'deny' })).url);
  expect(await running.ended).toMatchObject({ code: 3, stderr: expect.stringContaining('The login was refused.') });
  expect(fs.existsSync(file())).toBe(false);
});

test('a key from standard input is kept, and stays valid after the logout', async () => {
  const key = await service.mintKey({ scopes: ['read'] });
  const { code, stderr } = await home.svc(['login', '--token', '-', '--url', service.url], { input: `${key}\n` });
  expect([code, stderr.includes(key)]).toEqual([0, false]);
  expect(await home.output(['whoami', '--field', 'token.scopes'])).toBe('["read"]\n');
  expect(await home.svc(['logout'])).toMatchObject({ code: 0, stderr: expect.stringContaining('itself stays valid') });
  expect((await service.call('GET', '/v2/me', { key, project: null })).status).toBe(200);
  const refused = await home.svc(['login', '--token', 'svc_wrong', '--url', service.url]);
  expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining('code token_invalid') });
});

test('eight commands at once renew an expired token once, and the login goes on', async () => {
  await logInHere();
  const before = home.credentials().servers[service.url] as Record<string, string>;
  expire();
  const asked = await Promise.all(Array.from({ length: 8 }, () => home.svc(['whoami', '--field', 'user.email'])));
  expect(asked.map(({ code, stdout, stderr }) => [code, stdout, stderr])).toEqual(
    asked.map(() => [0, 'cli@example.com\n', '']),
  );
  const after = home.credentials().servers[service.url] as Record<string, string>;
  expect(after.access_token).not.toBe(before.access_token);
  const [{ count }] = (await service.sql(
    `select count(*)::int as count from oauth_records where kind = 'RefreshToken' and consumed_at is null`,
  )) as [{ count: number }];
  expect(count).toBeGreaterThanOrEqual(1);
  expire();
  expect(await home.output(['whoami', '--field', 'user.email'])).toBe('cli@example.com\n');
});

test('a login goes on where the answer that renews it was lost', async () => {
  await logInHere();
  let lost = 0;
  const front = http.createServer((request, response) => {
    const { method, url, headers } = request;
    const upstream = http.request(new URL(url ?? '', service.url), { method, headers }, (answer) => {
      if (url !== '/oauth/token' || (lost += 1) > 1)
        return void answer.pipe(response.writeHead(answer.statusCode ?? 0));
      answer.resume().once('end', () => request.socket.destroy());
    });
    request.pipe(upstream);
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(front.address() as { port: number }).port}`;
  const login = home.credentials().servers[service.url] as Record<string, unknown>;
  const expired = { ...login, expires_at: Date.now() - 1000 };
  fs.writeFileSync(file(), JSON.stringify({ current: url, servers: { [url]: expired } }));
  for (let count = 0; count < 2; count += 1)
    expect(await home.svc(['whoami', '--field', 'user.email'])).toMatchObject({
      code: 0,
      stdout: 'cli@example.com\n',
    });
  expect(lost).toBe(2);
  front.closeAllConnections();
  front.close();
});

test('a login that was revoked, files that others can read and a server without a login are explained', async () => {
  await logInHere();
  const keys = await service.sql<{ id: string }>(
    `update api_keys set revoked_at = now() where kind = 'oauth' and revoked_at is null returning id`,
  );
  for (const { id } of keys) service.platform.identities.forget({ key_id: id });
  const ended = await home.svc(['whoami']);
  expect(ended).toMatchObject({ code: 3, stderr: expect.stringContaining(`Run: svc login --url ${service.url}`) });
  fs.chmodSync(file(), 0o644);
  expect(await home.svc(['whoami'])).toMatchObject({
    code: 3,
    stderr: expect.stringContaining(`Run: chmod 600 ${file()}`),
  });
  fs.rmSync(file());
  const other = http.createServer((_, response) => response.writeHead(404).end('nothing'));
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as { port: number };
  const strange = await home.svc(['login', '--url', `http://127.0.0.1:${port}`]);
  other.close();
  expect(strange).toMatchObject({ code: 1, stderr: expect.stringContaining('has no login for programs') });
});

/** Without a connection that stays open, which would keep the command from ending. */
async function get(url: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(url, { headers: { Connection: 'close' } });
  return { status: answer.status, text: await answer.text() };
}
