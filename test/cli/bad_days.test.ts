/** @user any */
// Days on which things go wrong: networks, limits, pipes, proxies, tokens that end, a person who stops waiting.
import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import { appendLogLines } from '../../models/applications/log_line';
import { BINARY, buildCli, follow, logInWith, openHome, type Home } from '../support/cli/svc';
import { makeAuthority } from '../support/databases/authority';
import { newPerson } from '../support/identity/person';
import { needs } from '../support/runner/programs';
import { startService, type TestService } from '../support/service';

let service: TestService;
let home: Home;
const servers: http.Server[] = [];
beforeAll(async () => {
  buildCli();
  service = await startService();
  home = openHome(service);
});
afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  home?.remove();
  await service?.close();
});

/** @returns the port */
async function listen(server: http.Server): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as net.AddressInfo).port;
}

interface Seen {
  url: string;
  method: string;
  headers: http.IncomingHttpHeaders;
}

type Scripted = [status: number, headers: Record<string, string>, body: object];

/** A server that answers with these, one after the other, and then with the last one. */
async function scripted(
  ...answers: [number, Record<string, string>, object][]
): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const port = await listen(
    http.createServer((request, response) => {
      const isCatalog = request.url?.startsWith('/v2/errors');
      if (!isCatalog) seen.push({ url: request.url ?? '', method: request.method ?? '', headers: request.headers });
      const last = answers[Math.min(seen.length, answers.length) - 1] ?? answers[0];
      const [status, headers, body] = isCatalog ? [404, {}, {}] : (last as Scripted);
      response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body));
    }),
  );
  return { url: `http://127.0.0.1:${port}`, seen };
}

const limited = (seconds: number): Scripted => [
  429,
  { 'Retry-After': String(seconds) },
  { code: 'rate_limited', title: 'Too many requests', detail: 'Too many requests.' },
];

test('without a network the command says so and ends with 75', async () => {
  const refused = await home.svc(['whoami'], { env: { SVC_URL: 'http://127.0.0.1:1' } });
  expect(refused).toMatchObject({ code: 75, stdout: '' });
  expect(refused.stderr).toMatch(/^Error: Could not connect to http:\/\/127\.0\.0\.1:1: the connection was refused/);
  const unknown = await home.svc(['whoami'], { env: { SVC_URL: 'http://nowhere.invalid' } });
  expect(unknown).toMatchObject({ code: 75, stderr: expect.stringMatching(/no host nowhere\.invalid|looked up/) });
  expect(await home.svc(['whoami'], { env: { SVC_URL: 'ftp://x' } })).toMatchObject({ code: 2 });
});

test('a limited request is repeated with the same key, and given up where the wait is too long', async () => {
  const made = { id: 'vol_1', name: 'uploads' };
  const patient = await scripted(limited(1), [503, { 'Retry-After': '0' }, {}], [201, {}, made]);
  const create = ['api', 'createVolume', '-f', 'name=uploads', '-f', 'size_gb=1'];
  const done = await home.svc(create, { env: { SVC_URL: patient.url } });
  expect(done).toMatchObject({ code: 0, stderr: expect.stringContaining('The server asks to wait 1 s (status 429)') });
  expect(JSON.parse(done.stdout)).toEqual(made);
  const keys = patient.seen.map(({ headers }) => headers['idempotency-key']);
  expect([keys.length, new Set(keys).size, keys[0]]).toEqual([3, 1, expect.stringMatching(/^[0-9a-f-]{36}$/)]);
  const strict = await scripted(limited(3600));
  expect(await home.svc(['whoami'], { env: { SVC_URL: strict.url } })).toMatchObject({
    code: 75,
    stderr: expect.stringContaining('Too many requests.\nTry again in 3600 s.\n(code rate_limited)'),
  });
  expect(strict.seen).toHaveLength(1);
});

test('a connection that breaks off is tried again', async () => {
  let count = 0;
  const port = await listen(
    http.createServer((request, response) => {
      if ((count += 1) < 3) return void request.socket.destroy();
      response.end('{"user": {"email": "a@example.com"}, "token": {"scopes": null}}');
    }),
  );
  const env = { SVC_URL: `http://127.0.0.1:${port}` };
  expect(await home.output(['whoami', '--field', 'user.email'], { env })).toBe('a@example.com\n');
});

test('an answer that is no answer of the platform is named as such', async () => {
  const port = await listen(http.createServer((_, response) => response.writeHead(502).end('<html>Bad gateway')));
  const { code, stderr } = await home.svc(['whoami'], { env: { SVC_URL: `http://127.0.0.1:${port}` } });
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining('answered with status 502, and not as the platform does'),
  ]);
});

needs('bash').test('a reader that has enough ends the command quietly', async () => {
  const script = `"$0" "$1" api --list --json | head -1; echo "\${PIPESTATUS[0]}"`;
  const child = spawn('bash', ['-c', script, process.execPath, BINARY], { env: home.env });
  expect(await follow(child).ended).toEqual({ code: 0, stdout: '[\n0\n', stderr: '' });
});

test('a link of a folder does not choose who gets the token', async () => {
  const thief = await scripted([200, {}, { data: [], next_cursor: null }]);
  const folder = path.join(home.directory, 'cloned');
  fs.mkdirSync(path.join(folder, '.svc'), { recursive: true });
  const link = { url: thief.url, project_id: service.project, application_id: `app_${'0'.repeat(26)}` };
  fs.writeFileSync(path.join(folder, '.svc/link.json'), JSON.stringify(link));
  const { code, stderr } = await home.svc(['ps'], { cwd: folder, env: { SVC_URL: '' } });
  expect([code, stderr, thief.seen]).toEqual([2, expect.stringContaining('where you have never logged in'), []]);
});

describe('proxies', () => {
  test('requests go through HTTP_PROXY, with its password, unless NO_PROXY names the host', async () => {
    const proxy = await scripted([200, {}, { user: { email: 'a@example.com' }, token: { scopes: null } }]);
    const HTTP_PROXY = proxy.url.replace('://', '://ada:s%40cret@');
    const env = { SVC_URL: 'http://platform.invalid', HTTP_PROXY };
    expect(await home.output(['whoami', '--field', 'user.email'], { env })).toBe('a@example.com\n');
    expect(proxy.seen[0]).toMatchObject({
      url: 'http://platform.invalid/v2/me',
      headers: {
        host: 'platform.invalid',
        'proxy-authorization': `Basic ${Buffer.from('ada:s@cret').toString('base64')}`,
      },
    });
    const direct = await home.svc(['whoami'], { env: { ...env, NO_PROXY: 'example.com, .invalid' } });
    expect([direct.code, proxy.seen.length]).toEqual([75, 1]);
  });

  test('https goes through a tunnel, to a server of an own authority', async () => {
    const authority = await makeAuthority();
    const secure = https.createServer(await authority.issue(['platform.test']), (_, response) =>
      response.end('{"user": {"email": "tls@example.com"}, "token": {"scopes": null}}'),
    );
    const port = await listen(secure as unknown as http.Server);
    const asked: string[] = [];
    const proxy = http.createServer();
    proxy.on('connect', ({ url = '' }, client) => {
      asked.push(url);
      const upstream = net.connect(port, '127.0.0.1', () => {
        client.write('HTTP/1.1 200 Connection established\r\n\r\n');
        upstream.pipe(client).pipe(upstream);
      });
      for (const socket of [client, upstream]) socket.on('error', () => socket.destroy());
    });
    const env = { SVC_URL: 'https://platform.test', HTTPS_PROXY: `127.0.0.1:${await listen(proxy)}` };
    const untrusted = await home.svc(['whoami'], { env });
    expect([untrusted.code, untrusted.stderr]).toEqual([1, expect.stringContaining('NODE_EXTRA_CA_CERTS')]);
    const trusted = { ...env, NODE_EXTRA_CA_CERTS: authority.write(path.join(home.directory, 'ca.pem')) };
    expect(await home.output(['whoami', '--field', 'user.email'], { env: trusted })).toBe('tls@example.com\n');
    expect(asked).toEqual(['platform.test:443', 'platform.test:443']);
  });
});

describe('logs that are followed', () => {
  let application: string;
  let person: Home;
  beforeAll(async () => {
    application = (await service.call('POST', '/v2/applications', { body: { name: 'followed' } })).body.id;
    person = openHome();
    await logInWith(person, service, await newPerson(service, 'follow@example.com', 'owner'));
  });
  afterAll(() => person?.remove());

  const write = (message: string): Promise<void> =>
    appendLogLines(service.platform.database, [
      { project_id: service.project, application_id: application, source: 'app', message },
    ]);
  async function expireTokens(): Promise<void> {
    await service.sql(`update oauth_records set expires_at = now() - interval '1 second' where kind = 'AccessToken'`);
    const keys = await service.sql<{ id: string }>(`select id from api_keys where kind = 'oauth'`);
    for (const { id } of keys) service.platform.identities.forget({ key_id: id });
  }

  test('go on with a new token where it ended, without a gap, and end with 3 where there is no new one', async () => {
    const args = ['logs', '-f', '--app', application, '--project', service.project, '--field', 'message'];
    const running = person.start(args);
    await write('one');
    await running.until(/^one$/m);
    const { access_token } = person.credentials().servers[service.url] as Record<string, string>;
    await expireTokens();
    for (let index = 0; person.credentials().servers[service.url]?.access_token === access_token; index += 1) {
      await write(`line ${index}`);
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    await write('last');
    await running.until(/^last$/m);
    const shown = running.stdout().trim().split('\n');
    expect(shown).toEqual(['one', ...shown.slice(1, -1).map((_, index) => `line ${index}`), 'last']);
    const keys = await service.sql<{ id: string }>(
      `update api_keys set revoked_at = now() where kind = 'oauth' returning id`,
    );
    for (const { id } of keys) service.platform.identities.forget({ key_id: id });
    const end = Date.now() + 20_000;
    while (running.child.exitCode === null && Date.now() < end) {
      await write('hidden');
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    expect(await running.ended).toMatchObject({ code: 3, stderr: expect.stringContaining('svc login --url') });
    expect(running.stdout()).not.toContain(access_token);
  }, 60_000);
});
