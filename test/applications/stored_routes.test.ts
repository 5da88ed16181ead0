// Routes over a restart: those of the last run are served at once, and what is not known yet is not denied.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { openStoredRoutes, type StoredRoutes } from '../../server/agents/stored_routes';
import { openIngress } from '../../engines/ingress/http/http';
import { driverContext } from '../../core/driver';
import { createLog } from '../../core/log/log';
import { ask, closeAll, mirror, openFront, routeOf } from '../support/ingress/ingress';
import { openTrial, type Trial } from '../support/builds/runtime';

jest.setTimeout(60_000);
let directory: string;
let trial: Trial;
const log = createLog('silent');
beforeAll(async () => {
  directory = mkdtempSync(path.join(os.tmpdir(), 'platform-routes-'));
  trial = await openTrial({ sandbox: 'auto' });
});
afterEach(closeAll);
afterAll(async () => {
  await trial.close();
  rmSync(directory, { recursive: true });
});

const openStore = (): StoredRoutes =>
  openStoredRoutes({ file: path.join(directory, 'routes.json'), units: trial.options.directory, log });

test('before the routes are read an unknown host gets 503 and Retry-After, after it 404', async () => {
  const parts = { certificate: async () => null, challenge: async () => null, line: () => undefined };
  const ingress = await openIngress({ host: '127.0.0.1', port: 0, tlsPort: null, parts });
  const front = { port: ingress.ports.http };
  const early = await ask(front);
  expect([early.status, early.headers['retry-after'], JSON.parse(early.body).code]).toEqual([503, '1', 'starting']);
  const app = await mirror('a');
  ingress.restoreRoutes([routeOf([app])]);
  expect((await ask(front)).status).toBe(200);
  expect((await ask(front, { host: 'other.example.com' })).status).toBe(503);
  ingress.replaceRoutes([]);
  expect((await ask(front)).status).toBe(404);
  await ingress.close(0);
});

test('what was stored is served after a restart, without targets that have ended or listen elsewhere', async () => {
  const server = (port: number): string =>
    `exec node -e "require('http').createServer((q, s) => s.end('alive'))` +
    `.listen(${port}, '127.0.0.1', () => console.log('up'))"`;
  const [alive, ended] = await Promise.all(
    [24_050, 24_051].map((port) => trial.start(trial.spec(`ins_${port}`, server(port)))),
  );
  await trial.printed('ins_24050', 'up');
  await trial.printed('ins_24051', 'up');
  const before = openStore();
  const targets = [
    { instance_id: 'ins_24050', port: 24_050 },
    { instance_id: 'ins_24051', port: 24_051 },
    { instance_id: 'ins_24050', port: 24_099 },
    { instance_id: 'ins_unknown', port: 24_050 },
  ];
  before.save(() => [routeOf(targets)]);
  await before.close();
  expect(statSync(path.join(directory, 'routes.json')).mode & 0o777).toBe(0o600);
  await trial.runtime.stop(ended!, { grace_ms: 0 }, driverContext(20_000));
  const restored = await openStore().load();
  expect(restored).toEqual([routeOf([targets[0]!])]);
  const front = await openFront([]);
  front.ingress.replaceRoutes(restored);
  expect((await ask(front)).body).toBe('alive');
  await trial.runtime.stop(alive!, { grace_ms: 0 }, driverContext(20_000));
});

test('a file that was cut off, or none, restores no routes', async () => {
  const file = path.join(directory, 'routes.json');
  writeFileSync(file, readFileSync(file, 'utf8').slice(0, -5));
  expect(await openStore().load()).toEqual([]);
  rmSync(file);
  expect(await openStore().load()).toEqual([]);
});
