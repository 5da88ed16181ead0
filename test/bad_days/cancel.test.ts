// Deployments are canceled at every stage, and meet each other: the version before goes on, and nothing stays behind.
import { makeDoor, nothingOrphaned, type Door } from '../support/bad_days';
import { eventually, startDeployService, type DeployService, type TestApplication } from '../support/deploy';
import { nodeApp, procfileApp, webCommand } from '../support/repositories';

let service: DeployService;
const doors: Door[] = [];
beforeAll(async () => {
  service = await startDeployService({ BUILD_CONCURRENCY: '2' });
}, 60_000);
afterAll(async () => {
  for (const door of doors) await door.close();
  await service?.close();
}, 60_000);

async function door(): Promise<Door> {
  const made = await makeDoor();
  doors.push(made);
  return made;
}

/* eslint-disable @typescript-eslint/no-explicit-any -- answers of the service */
const at = (application: TestApplication, id: string, status: string): Promise<any> => eventually(`${status} of ${id}`, async () => {
  const found = await application.get(`/deployments/${id}`);
  return found.status === status ? found : null;
});

const building = (script: string) => ({ 'package.json': JSON.stringify({ name: 'x', version: '1.0.0', scripts: { build: 'node build.js', start: 'node x.js' } }), 'package-lock.json': JSON.stringify({ name: 'x', version: '1.0.0', lockfileVersion: 3, requires: true, packages: { '': { name: 'x', version: '1.0.0' } } }), 'build.js': script });

interface Stage {
  name: string;
  files: (door: Door) => Record<string, string | null>;
  /** Resolves when the deployment is there. */
  reached(application: TestApplication, id: string, door: Door): Promise<unknown>;
}

const stages: Stage[] = [
  { name: 'building', files: ({ script }) => building(`${script}`), reached: (_application, _id, held) => eventually('the build at the door', async () => held.waiting() > 0) },
  { name: 'running the release command', files: ({ command }) => procfileApp('v2', command) as Record<string, string>, reached: (_application, _id, held) => eventually('the release command at the door', async () => held.waiting() > 0) },
  { name: 'waiting for health', files: ({ script }) => ({ ...webCommand('node late.js'), 'late.js': script }) as Record<string, string>, reached: (_application, _id, held) => eventually('the app at the door', async () => held.waiting() > 0) },
];

test.each(stages)('canceled while $name', async ({ files, reached }) => {
  const held = await door();
  const application = await service.application(nodeApp('v1'), { health_check: { grace_period_seconds: 60 } });
  expect((await application.deploy()).status).toBe('active');
  const traffic = application.traffic('/', 1);
  const gone = { 'package.json': null, 'package-lock.json': null, 'server.js': null };
  application.push({ ...gone, ...files(held) });
  const { id } = await application.ask();
  await reached(application, id, held);
  const canceled = await application.post(`/deployments/${id}/cancel`);
  expect(canceled).toMatchObject({ status: 'canceled', status_reason: expect.stringMatching(/^Canceled by \S/) });
  await nothingOrphaned(service);
  const { lost, seen } = await traffic.stop();
  expect([lost, [...seen]]).toEqual([[], ['v1']]);
  expect(await application.get()).toMatchObject({ status: 'running' });
  expect((await service.call('POST', `/v2/applications/${application.id}/deployments/${id}/cancel`)).status).toBe(409);
}, 60_000);

test('canceled while the repository is fetched, and while it waits for its turn', async () => {
  const held = await door();
  const application = await service.application(procfileApp('v1', held.command));
  const first = await application.ask();
  application.push(procfileApp('v2'));
  const [fetching, waiting] = [await application.ask(), await application.ask()];
  await eventually('the first one at the door', async () => held.waiting() > 0);
  service.git.intercept = () => 'hang';
  held.open();
  expect((await application.ended(first.id)).status).toBe('active');
  await at(application, fetching.id, 'building');
  await at(application, waiting.id, 'queued');
  expect((await application.post(`/deployments/${waiting.id}/cancel`)).status).toBe('canceled');
  expect((await application.post(`/deployments/${fetching.id}/cancel`)).status).toBe('canceled');
  service.git.intercept = null;
  await nothingOrphaned(service);
  expect((await application.get()).status).toBe('running');
  const next = await application.deploy();
  expect(next.status).toBe('active');
  expect((await application.visit()).body).toBe('v2 released');
}, 60_000);

test('two deployments at once: one after the other, and the later one stays', async () => {
  const application = await service.application(nodeApp('v1'));
  const one = application.ask();
  application.push(nodeApp('v2'));
  const [first, second] = [await one, await application.ask()];
  expect(second.number).toBe(first.number + 1);
  const ends = await Promise.all([application.ended(first.id), application.ended(second.id)]);
  expect(ends.map(({ status }) => status)).toEqual([expect.stringMatching(/active|superseded/), 'active']);
  expect(Date.parse(ends[1].started_at)).toBeGreaterThanOrEqual(Date.parse(ends[0].finished_at));
  expect((await application.visit()).body).toBe('v2');
  await eventually('one instance', async () => (await application.get('/instances')).data.length === 1);
  await nothingOrphaned(service);
}, 60_000);
