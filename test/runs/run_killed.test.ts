/** @tier heavy @quarter 3 @covers jobs/runs server/agents/shipper.ts drivers/runtime/log.ts */
// The control plane is killed with -9 while runs print, end and are canceled; the next one finds them all.
import { setTimeout as sleep } from 'node:timers/promises';
import { nothingOrphaned } from '../support/processes/bad_days';
import { startPlant, type Plant } from '../support/processes/bad_days_program';
import { startProgram } from '../support/processes/program';
import type { TestApplication } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { attach, type RunClient } from '../support/runs/attach';
import { runEnded, startRun } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';

let plant: Plant;
let application: TestApplication;

beforeAll(async () => {
  plant = await startPlant();
  application = await plant.application(nodeApp('one'));
  expect((await application.deploy()).status).toBe('active');
}, 60_000);
afterAll(() => plant?.close(), 90_000);

/** All messages of the log, page by page. */
async function wholeLog(id: string): Promise<string[]> {
  const messages: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const more = cursor === '' ? '' : `&cursor=${cursor}`;
    const page = await application.get(`/runs/${id}/logs?order=asc&limit=1000${more}`);
    messages.push(...page.data.map(({ message }: { message: string }) => message));
    cursor = page.next_cursor;
  }
  return messages;
}

const counted = (count: number): string[] => Array.from({ length: count }, (_, index) => `line ${index + 1}`);

test('while it prints: each line is in the log once, and the exit code is right', async () => {
  const [lines, kills] = [4_000, 4];
  const run = await startRun(
    application,
    `i=0; while [ $i -lt ${lines} ]; do i=$((i + 1)); echo line $i; [ $((i % 20)) = 0 ] && sleep 0.05; done; exit 42`,
  );
  await waitFor('it prints', async () => (await wholeLog(run.id)).length > 10);
  for (let kill = 0; kill < kills; kill += 1) {
    await plant.kill();
    await sleep(300);
    await plant.start();
    await sleep(200 + 400 * Math.random());
  }
  expect(await runEnded(application, run.id, 60_000)).toMatchObject({ status: 'failed', exit_code: 42, signal: null });
  expect(await wholeLog(run.id)).toEqual(counted(lines));
}, 120_000);

test('while it ends, its end is told soon', async () => {
  const ending = await startRun(application, 'sleep 1; echo last; exit 5');
  await waitFor('it runs', async () => (await application.get(`/runs/${ending.id}`)).status === 'running');
  await plant.kill();
  await sleep(1_500);
  await plant.start();
  const begun = Date.now();
  expect(await runEnded(application, ending.id)).toMatchObject({ status: 'failed', exit_code: 5 });
  expect(Date.now() - begun).toBeLessThan(10_000);
  expect(await wholeLog(ending.id)).toEqual(['last']);
}, 60_000);

test('while it is canceled, and while its application is deleted', async () => {
  const stubborn = `node -e 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1e3); console.log("ready")'`;
  const run = await startRun(application, stubborn);
  await waitFor('it is ready', async () => (await wholeLog(run.id)).length === 1);
  await application.post(`/runs/${run.id}/cancel`);
  await sleep(300);
  await plant.kill();
  await plant.start();
  expect(await runEnded(application, run.id)).toMatchObject({ status: 'canceled', signal: 'SIGKILL' });

  const gone = await plant.application(nodeApp('gone'));
  expect((await gone.deploy()).status).toBe('active');
  const left = await startRun(gone, stubborn);
  await waitFor('it runs', async () => (await gone.get(`/runs/${left.id}`)).status === 'running');
  await plant.call('DELETE', `/v2/applications/${gone.id}`);
  await plant.kill();
  await plant.start();
  await waitFor('its rows are gone', async () => {
    return (await plant.sql('select 1 from runs where id = $1', [left.id])).length === 0;
  });
  await nothingOrphaned(plant);
}, 120_000);

test('a client that comes again after that writes at once', async () => {
  const run = await startRun(application, 'while read -r line; do echo "got $line"; done', { detached: false });
  const client = (): Promise<RunClient> => attach(plant.access(), application, run.id);
  const before = await client();
  expect((await before.told('ready')).writer).toBe(true);
  before.type('one\n');
  await before.shows('got one');
  await plant.kill();
  await before.closed;
  await plant.start();
  const after = await client();
  expect((await after.told('ready')).writer).toBe(true);
  const other = await client();
  expect((await other.told('ready')).writer).toBe(false);
  after.type('two\n');
  await other.shows('got two');
  after.command({ type: 'close_stdin' });
  expect(await runEnded(application, run.id)).toMatchObject({ status: 'succeeded' });
}, 60_000);

test('beside a second process of the API each run happens once', async () => {
  const second = startProgram({
    ...{ DATABASE_URL: plant.databaseUrl, PLATFORM_DATA_DIR: plant.dataDir, WORKER: 'separate' },
  });
  try {
    await second.ready();
    const runs = await Promise.all(Array.from({ length: 8 }, (_, index) => startRun(application, `echo run ${index}`)));
    for (const [index, { id }] of runs.entries()) {
      expect((await runEnded(application, id)).status).toBe('succeeded');
      expect(await wholeLog(id)).toEqual([`run ${index}`]);
    }
  } finally {
    second.signal('SIGTERM');
    await second.ended;
  }
}, 60_000);
