// The ingress in a process of its own: what it serves on through, and how a new program takes its place.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RemoteIngress } from '../../../engines/ingress/process/remote';
import type { AccessLine, Certificate } from '../../../engines/ingress/ingress';
import { openStoredZones } from '../../../server/agents/cdn/stored_zones';
import { createLog } from '../../../core/log/log';
import { secretBox } from '../../../core/secrets';
import {
  isProcessAlive,
  startIngressProcessBench,
  type IngressProcessBench,
} from '../../support/ingress/ingress_process';
import { makeCertificate } from '../../support/ingress/ingress_certificate';
import { needs } from '../../support/runner/programs';
import { ask, closeAll, routeOf, startApp } from '../../support/ingress/ingress';
import { retryCheck } from '../../support/wait_for';

const { test: openssl } = needs('openssl');

let bench: IngressProcessBench;
const lines: AccessLine[] = [];
const messages: string[] = [];

beforeEach(() => {
  bench = startIngressProcessBench();
  lines.length = 0;
  messages.length = 0;
});

afterEach(async () => {
  await bench.close();
  await closeAll();
});

const secrets = secretBox([{ id: 'k1', key: randomBytes(32) }]);
const log = createLog('silent');

function open(over: { trustProxy?: number; certificate?: Certificate } = {}): Promise<RemoteIngress> {
  return bench.open({
    ...{ tlsPort: over.certificate ? 0 : null, trustProxy: over.trustProxy ?? 0 },
    callbacks: {
      certificate: (host) => Promise.resolve(host === 'app.example.com' ? (over.certificate ?? null) : null),
      challenge: (token) => Promise.resolve(token === 'a-token' ? 'an answer' : null),
      line: (line) => void lines.push(line),
    },
    stored: openStoredZones({ file: path.join(path.dirname(bench.directory), 'zones'), secrets, log }),
    log: (message) => void messages.push(message),
  });
}

test('routes, pins, drains, lines and traffic go through the process', async () => {
  const [first, second] = await Promise.all(
    ['one', 'two'].map((name) => startApp((_, response) => response.end(name))),
  );
  const { ingress } = await open();
  const front = { port: ingress.ports.http };
  expect((await ask(front)).status).toBe(503);
  ingress.replaceRoutes([routeOf([first!])]);
  await retryCheck(async () => expect((await ask(front, { path: '/x?secret=1' })).body).toBe('one'));
  const late = ingress.beginRead();
  const unpin = ingress.pinRoutes('app_1', [routeOf([second!])]);
  ingress.replaceApplicationRoutes('app_1', [routeOf([first!])], late);
  await ingress.drain(first!.instance_id, 1_000);
  expect((await ask(front)).body).toBe('two');
  unpin();
  ingress.replaceApplicationRoutes('app_1', [routeOf([first!])], late);
  await ingress.drain('ins_none', 10);
  expect((await ask(front)).body).toBe('two');
  await retryCheck(async () => expect(lines.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(3));
  expect(lines.at(-1)).toMatchObject({ at: expect.any(Date), application_id: 'app_1', reason: null });
  expect(JSON.stringify(lines)).not.toContain('secret');
  const counted = ingress.takeTraffic();
  expect(counted.reduce((sum, { requests }) => sum + requests, 0)).toBe(lines.length);
  expect(ingress.takeTraffic()).toEqual([]);
  expect((await ask(front, { path: '/.well-known/acme-challenge/a-token' })).body).toBe('an answer');
});

test('every request is counted once, whoever replaces the control plane or the process', async () => {
  const app = await startApp((_, response) => response.end('served'));
  let [control, answered] = [await open(), 0];
  const front = { port: control.ingress.ports.http };
  control.ingress.replaceRoutes([routeOf([app])]);
  const visit = async (): Promise<void> => {
    const { status } = await ask(front);
    if (status === 200) answered += 1;
    expect(status).toBe(200);
  };
  await retryCheck(visit);
  const counted = (): number => control.ingress.takeTraffic().reduce((sum, { requests }) => sum + requests, 0);
  const load = setInterval(() => void visit(), 5);
  await sleep(400);
  let sum = 0;
  for (const trustProxy of [0, 1, 1]) {
    await control.ingress.holdTraffic!();
    sum += counted();
    // The last points are being written meanwhile.
    await sleep(700);
    expect(control.ingress.takeTraffic()).toEqual([]);
    await bench.detach(control);
    await sleep(200);
    control = await open({ trustProxy });
    control.ingress.replaceRoutes([routeOf([app])]);
    await sleep(400);
  }
  clearInterval(load);
  await retryCheck(async () => expect((sum += counted())).toBe(answered));
});

test('a control plane that is killed takes its reads and pins along: routes of the next one count', async () => {
  const [first, second, third] = await Promise.all(
    ['one', 'two', 'three'].map((name) => startApp((_, response) => response.end(name))),
  );
  const before = await open();
  const front = { port: before.ingress.ports.http };
  const another = { ...routeOf([first!], { application_id: 'app_2' }), hosts: ['other.example.com'] };
  for (let reads = 0; reads < 20; reads += 1) before.ingress.replaceRoutes([routeOf([first!]), another]);
  before.ingress.pinRoutes('app_2', [{ ...another, targets: [second!] }]);
  await retryCheck(async () => expect((await ask(front, { host: 'other.example.com' })).body).toBe('two'));
  await bench.detach(before);
  const after = await open();
  after.ingress.replaceApplicationRoutes('app_1', [routeOf([third!])], after.ingress.beginRead());
  await retryCheck(async () => expect((await ask(front)).body).toBe('three'));
  after.ingress.replaceApplicationRoutes('app_2', [another], after.ingress.beginRead());
  await retryCheck(async () => expect((await ask(front, { host: 'other.example.com' })).body).toBe('one'));
});

openssl('a control plane that is killed leaves the process serving; the next one finds it', async () => {
  const app = await startApp((_, response) => response.end('served'));
  const certificate = makeCertificate('app.example.com');
  const before = await open({ certificate });
  before.ingress.replaceRoutes([routeOf([app])]);
  const { http: port, https: securePort } = before.ingress.ports;
  await retryCheck(async () => expect((await ask({ port })).body).toBe('served'));
  const secure = (): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const options = { port: securePort, host: '127.0.0.1', servername: 'app.example.com', rejectUnauthorized: false };
      const request = https.get({ ...options, agent: false, headers: { host: 'app.example.com' } }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode));
      });
      request.on('error', reject);
    });
  expect(await secure()).toBe(200);
  await retryCheck(async () => expect(lines.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(2));
  before.ingress.forgetCertificate('app.example.com');
  await expect(open({ certificate })).rejects.toMatchObject({ code: 'EBUSY' });
  await bench.detach(before); // as the end of its process closes its connection
  const pid = await bench.pid();
  // Nobody answers what certificate there is: the one that was found serves on.
  expect([(await ask({ port })).body, await secure()]).toEqual(['served', 200]);
  const after = await open({ certificate });
  expect([after.ingress.ports, await ask({ port })]).toMatchObject([
    { http: port, https: securePort },
    { body: 'served' },
  ]);
  expect(after.ingress.beginRead()).toBeGreaterThan(1);
  await retryCheck(async () => expect(lines.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(4));
  expect(isProcessAlive(pid)).toBe(true);
});

test('killed, it is started again at the same port, with routes and zones', async () => {
  const app = await startApp((_, response) => response.end('served'));
  const first = await open();
  const { ingress, cdn } = first;
  ingress.replaceRoutes([routeOf([app])]);
  const origin = { url: `http://127.0.0.1:${app.port}`, host_header: 'origin.example.com', is_internal: true };
  const cache = { default_ttl_seconds: 60, browser_ttl_seconds: null, respect_origin_headers: true };
  const rules = { ...cache, query_string: 'include' as const, serve_stale: false };
  const hosts = [{ host: 'cdn.example.com', domain_id: '' }];
  const zone = { hosts, origin, enabled: true, cache: rules, compression: false, force_https: false };
  await cdn.ensureZone('cdn_1', zone);
  const front = { port: ingress.ports.http };
  expect((await ask(front, { host: 'cdn.example.com' })).body).toBe('served');
  const pid = await bench.pid();
  process.kill(pid, 'SIGKILL');
  await retryCheck(async () => {
    expect((await ask(front)).body).toBe('served');
    expect((await ask(front, { host: 'cdn.example.com' })).body).toBe('served');
  });
  expect(messages).toEqual(['The ingress process has ended. It is started again.']);
  await retryCheck(async () => expect(cdn.takeTraffic().length).toBeGreaterThan(0));
  // Both gone, as after a restart of the machine: the zones are there before anybody asks for them.
  await bench.detach(first);
  process.kill(await bench.pid(), 'SIGKILL');
  const next = await open();
  next.ingress.replaceRoutes([]);
  await retryCheck(async () => {
    const { body } = await ask({ port: next.ingress.ports.http }, { host: 'cdn.example.com' });
    expect(body).toBe('served');
  });
});

type Lost = NodeJS.ErrnoException & { reusedSocket?: boolean };

test('another program takes its place without a lost request; the old one ends', async () => {
  const app = await startApp((_, response) => response.end('served'));
  const before = await open();
  before.ingress.replaceRoutes([routeOf([app])]);
  const { http: port } = before.ingress.ports;
  await retryCheck(async () => expect((await ask({ port })).body).toBe('served'));
  await bench.detach(before);
  const old = await bench.pid();
  const agents = Array.from({ length: 8 }, () => new http.Agent({ keepAlive: true, maxSockets: 1 }));
  const outcomes: Record<string, number> = {};
  let isOver = false;
  const clients = agents.map(async (agent, index) => {
    while (!isOver) {
      const outcome = await ask({ port }, index % 2 ? { agent } : {}).then(
        ({ body, status }) => (status === 200 ? body : String(status)),
        // Of a connection that both sides end at the same moment, clients send it again (RFC 9110 §9.2.2).
        (error: Lost) => (error.reusedSocket ? null : (error.code ?? error.message)),
      );
      if (outcome !== null) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  });
  // Another setting needs another program as another version does.
  const after = await open({ trustProxy: 1 });
  // Stored routes have no pods; what the program before has served is newer.
  after.ingress.restoreRoutes([routeOf([])]);
  await retryCheck(async () => expect(isProcessAlive(old)).toBe(false));
  isOver = true;
  await Promise.all(clients);
  for (const agent of agents) agent.destroy();
  expect(after.ingress.ports.http).toBe(port);
  expect(Object.keys(outcomes)).toEqual(['served']);
  expect(outcomes.served).toBeGreaterThan(50);
});

test('it ends when nothing is behind it, and when its directory goes', async () => {
  const unused = await open();
  const first = await bench.pid();
  await unused.ingress.close(0);
  await retryCheck(async () => expect(isProcessAlive(first)).toBe(false));
  const used = await open();
  used.ingress.replaceRoutes([routeOf([await startApp((_, response) => response.end())])]);
  await bench.detach(used);
  const pid = await bench.pid();
  rmSync(bench.directory, { recursive: true });
  await retryCheck(async () => expect(isProcessAlive(pid)).toBe(false));
});

test('its command line and environment have no secret, and its socket is of its user alone', async () => {
  process.env.PLATFORM_TEST_SECRET = 'do-not-pass-on';
  await open();
  const pid = await bench.pid();
  const { stdout } = await new Promise<{ stdout: string }>((resolve, reject) =>
    execFile('cat', [`/proc/${pid}/environ`, `/proc/${pid}/cmdline`], (error, out) =>
      error ? reject(error) : resolve({ stdout: out }),
    ),
  );
  delete process.env.PLATFORM_TEST_SECRET;
  expect(stdout).not.toMatch(/do-not-pass-on|DATABASE_URL/);
});
