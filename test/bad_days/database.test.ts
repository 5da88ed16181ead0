/** @tier heavy @quarter 1 @covers jobs/loop.ts jobs/claim_loop.ts jobs/deployments db */
// The database goes away in the middle of deployments and comes back: applications never notice, deployments go on.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openEmbedded, type Embedded } from '../../server/platform/embedded';
import { makeDoor, nothingOrphaned, type Door } from '../support/processes/bad_days';
import { startDeployService, type DeployService } from '../support/deployments/deploy';
import { nodeApp, procfileApp, webCommand } from '../support/git/repositories';
import { waitFor } from '../support/wait_for';

const AWAY_MS = 4_000;

const home = mkdtempSync(path.join(tmpdir(), 'platform-restart-'));
chmodSync(home, 0o755);
let engine: Embedded;
let service: DeployService;
const doors: Door[] = [];

async function startEngine(port: string[] = []): Promise<Embedded> {
  return openEmbedded({ dataDir: home, flags: ['-c', 'fsync=off', ...port] });
}

beforeAll(async () => {
  engine = await startEngine();
  service = await startDeployService({ DATABASE_URL: engine.url, LOG_LEVEL: 'silent', BUILD_CONCURRENCY: '4' });
}, 60_000);
afterAll(async () => {
  for (const door of doors) await door.close();
  await service?.close();
  await engine?.close();
  rmSync(home, { recursive: true, force: true });
}, 60_000);

async function door(): Promise<Door> {
  const made = await makeDoor();
  doors.push(made);
  return made;
}

test('the database restarts during deployments: they finish, and applications answer all the time', async () => {
  const [inBuild, inRelease, inStart] = await Promise.all([door(), door(), door()]);
  const serving = await service.application(nodeApp('serving'));
  expect((await serving.deploy()).status).toBe('active');
  const built = await service.application({
    ...nodeApp('built'),
    'package.json': JSON.stringify({
      name: 'app',
      version: '1.0.0',
      scripts: { build: 'node build.js', start: 'node server.js' },
    }),
    'build.js': inBuild.script,
  });
  const released = await service.application(procfileApp('released', inRelease.command));
  const started = await service.application(
    {
      ...webCommand('node late.js'),
      'late.js':
        `${inStart.script}.then(() => require('http').createServer((q, a) => ` +
        "a.end('late')).listen(process.env.PORT, '127.0.0.1'))",
    },
    { health_check: { grace_period_seconds: 60, interval_seconds: 5, timeout_seconds: 4 } },
  );
  const all = [built, released, started];
  const asked = await Promise.all(all.map((application) => application.ask()));
  await waitFor('all at their doors', async () => [inBuild, inRelease, inStart].every((one) => one.waiting() > 0));
  const traffic = serving.traffic('/', 2);

  const { port } = new URL(engine.url);
  await engine.close();
  expect(
    (
      await fetch(`${service.url}/v2/applications`, {
        headers: { Authorization: `Bearer ${service.key}`, 'X-Svc-Project': service.project },
      })
    ).status,
  ).toBe(503);
  // The builds end while nobody can write it down.
  for (const one of [inBuild, inRelease, inStart]) one.open();
  await sleep(AWAY_MS);
  engine = await startEngine(['-p', port]);

  const ends = await Promise.all(
    all.map((application, index) => application.ended(asked[index].id, 60_000).catch((error: Error) => error)),
  );
  expect(ends).toMatchObject(all.map(() => ({ status: 'active', status_reason: null })));
  const { total, lost } = await traffic.stop();
  expect(lost).toEqual([]);
  expect(total).toBeGreaterThan(100);
  expect([inBuild, inRelease, inStart].map((one) => one.waiting())).toEqual([1, 1, 1]);
  for (const application of all)
    await waitFor(`${application.name} answers`, async () => (await application.visit()).status === 200);
  await nothingOrphaned(service);
}, 120_000);
