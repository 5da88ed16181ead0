/** @tier heavy @quarter 4 @covers jobs/deployments/deployment jobs/applications/instance jobs/loop.ts */
// The control plane is killed with -9 while everything is under way; the next one finds it all and goes on.
import { setTimeout as sleep } from 'node:timers/promises';
import { makeDoor, nothingOrphaned, type Door } from '../../support/processes/bad_days';
import { startPlant, type Plant } from '../../support/processes/bad_days_program';
import { visitHost, type TestApplication } from '../../support/deployments/deploy';
import { nodeApp, procfileApp, webCommand } from '../../support/git/repositories';
import type { GitFiles } from '../../support/git/git_server';
import { waitFor } from '../../support/wait_for';

const ATTEMPTS_MS = (process.env.KILL_AFTER_MS ?? '150,600,1400').split(',').map(Number);

let plant: Plant;
const doors: Door[] = [];
beforeAll(async () => {
  plant = await startPlant({ BUILD_CONCURRENCY: '2' });
}, 60_000);
afterAll(async () => {
  for (const door of doors) await door.close();
  await plant?.close();
}, 90_000);

async function door(): Promise<Door> {
  const made = await makeDoor();
  doors.push(made);
  return made;
}

const serve = (word: string): string =>
  `require('http').createServer((q, a) => a.end('${word}')).listen(process.env.PORT, '127.0.0.1')`;
const stubborn: GitFiles = webCommand('node server.js', {
  'server.js': `process.on('SIGTERM', () => {}); ${serve('stubborn')}`,
});
const building = (script: string): GitFiles => ({
  ...nodeApp('built'),
  'package.json': JSON.stringify({
    name: 'app',
    version: '1.0.0',
    scripts: { build: 'node build.js', start: 'node server.js' },
  }),
  'build.js': script,
});

interface Instance {
  id: string;
  port: number;
  restart_count: number;
  pid: number;
}
const instancesOf = ({ id }: TestApplication): Promise<Instance[]> =>
  plant.sql<Instance>(
    `select id, port, restart_count, (handle ->> 'pid')::int as pid from instances
      where application_id = $1 and status = 'running'`,
    [id],
  );
const active = async (application: TestApplication): Promise<void> => {
  const ended = await application.deploy();
  expect([ended.status, ended.status_reason]).toEqual(['active', null]);
};
const queuedAs = (application: TestApplication, id: string, status: string): Promise<unknown> =>
  waitFor(
    `${status} of ${application.name}`,
    async () => (await application.get(`/deployments/${id}`)).status === status,
  );

test('killed at any stage of a deployment, and while applications run, crash, stop and are deleted', async () => {
  const held = await Promise.all([door(), door(), door()]);
  const [inBuild, inRelease, inStart] = held as [Door, Door, Door];
  const long = { health_check: { grace_period_seconds: 90, interval_seconds: 5, timeout_seconds: 4 } };
  const [serving, crashing, stopping, going] = (await Promise.all(
    [nodeApp('serving'), nodeApp('crashing'), stubborn, stubborn].map((files) =>
      plant.application(files, { run: { shutdown_grace_seconds: 6 } }),
    ),
  )) as [TestApplication, TestApplication, TestApplication, TestApplication];
  for (const application of [serving, crashing, stopping, going]) await active(application);
  const releasing = await plant.application(procfileApp('releasing', inRelease.command));
  const starting = await plant.application(
    { ...webCommand('node late.js'), 'late.js': `${inStart.script}.then(() => ${serve('late')})` },
    long,
  );
  const asked: [TestApplication, string][] = [];
  const ask = async (application: TestApplication): Promise<string> => {
    const { id } = await application.ask();
    asked.push([application, id]);
    return id;
  };
  for (const application of [releasing, starting]) await ask(application);
  await waitFor(
    'the release command and the app at their doors',
    async () => inRelease.waiting() > 0 && inStart.waiting() > 0,
  );
  const built = await plant.application(building(inBuild.script));
  await ask(built);
  await waitFor('the build at its door', async () => inBuild.waiting() > 0);
  const fetching = await plant.application(nodeApp('fetched'));
  const queued = await plant.application(nodeApp('queued'));
  // The heads are known; the files are held.
  plant.git.intercept = null;
  const fetched = await ask(fetching);
  plant.git.intercept = (request) => (request.url?.includes(`/${fetching.name}.git/`) ? 'hang' : null);
  const waiting = await ask(queued);
  await queuedAs(queued, waiting, 'queued');
  await queuedAs(fetching, fetched, 'building').catch(() => null);
  const [before] = (await instancesOf(serving)) as [Instance];
  const [victim] = (await instancesOf(crashing)) as [Instance];
  await stopping.post('/stop');
  await plant.call('DELETE', `/v2/applications/${going.id}`);
  await sleep(500);

  await plant.kill();
  // Nobody is there, and the application is.
  expect((await visitHost(before.port, serving.host)).body).toBe('serving');
  await expect(serving.visit()).rejects.toThrow();
  process.kill(victim.pid, 'SIGKILL');
  plant.git.intercept = null;
  inBuild.open();
  await plant.start();
  for (const one of [inRelease, inStart]) one.open();

  const ends = await Promise.all(asked.map(([application, id]) => application.ended(id, 60_000)));
  expect(ends.map(({ status, status_reason }) => [status, status_reason])).toEqual(asked.map(() => ['active', null]));
  for (const application of [serving, crashing, releasing, starting, built, fetching, queued])
    await waitFor(`${application.name} answers`, async () => (await application.visit()).status === 200);
  expect((await instancesOf(serving))[0]).toEqual(before);
  await waitFor('the restart', async () => (await instancesOf(crashing))[0]?.restart_count === 1);
  await waitFor('stopped', async () => (await stopping.get()).status === 'stopped');
  await waitFor('gone', async () => (await plant.call('GET', `/v2/applications/${going.id}`)).status === 404);
  // Found again, not begun anew.
  expect(held.map((one) => one.waiting())).toEqual([1, 1, 1]);
  await nothingOrphaned(plant);
}, 150_000);

test(
  'killed again and again while one application is deployed',
  async () => {
    const application = await plant.application(procfileApp('v0'));
    await active(application);
    for (const [index, ms] of ATTEMPTS_MS.entries()) {
      application.push(procfileApp(`v${index + 1}`));
      const { id } = await application.ask();
      await sleep(ms);
      await plant.kill();
      await plant.start();
      const ended = await application.ended(id, 60_000);
      expect([ms, ended.status, ended.status_reason]).toEqual([ms, 'active', null]);
      await waitFor('the new version', async () => (await application.visit()).body === `v${index + 1} released`);
      await nothingOrphaned(plant);
    }
  },
  60_000 + ATTEMPTS_MS.length * 15_000,
);
