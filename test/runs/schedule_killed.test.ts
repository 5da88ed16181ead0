/** @tier heavy @quarter 3 @covers jobs/runs/schedule.ts models/runs/schedule */
/** @user any */
// The control plane is killed with -9 while schedules are due. The times are written into rows: no clock is moved.
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestApplication } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { startPlant, type Plant } from '../support/processes/bad_days_program';
import { runEnded, runLog } from '../support/runs/runs';
import { firings, makeDue } from '../support/runs/schedules';
import { waitFor } from '../support/wait_for';

let plant: Plant;
let application: TestApplication;

beforeAll(async () => {
  plant = await startPlant();
  application = await plant.application(nodeApp('one'));
  expect((await application.deploy()).status).toBe('active');
}, 60_000);
afterAll(() => plant?.close(), 90_000);

const SCHEDULES = 4;
const KILLS = 6;

test('a due time is neither lost nor doubled, and the run of each ends', async () => {
  const ids: string[] = [];
  for (let index = 0; index < SCHEDULES; index += 1) {
    const schedule = { name: `killed-${index}`, cron: '0 0 29 2 *', command: `echo ${index}`, concurrency: 'allow' };
    ids.push((await application.post('/schedules', schedule)).id);
  }
  for (let kill = 0; kill < KILLS; kill += 1) {
    for (const id of ids) await makeDue(plant, id);
    await plant.sql(`select pg_notify('due', 'cron_schedules')`);
    await sleep(kill * 8);
    await plant.kill();
    await plant.start();
    for (const [index, id] of ids.entries()) {
      const found = await waitFor(
        `the decision on schedule ${index} after kill ${kill}`,
        async () => {
          const all = await firings(plant, id);
          return all.length > kill ? all : null;
        },
        60_000,
      );
      expect(found.map(({ outcome }) => outcome)).toEqual(Array.from({ length: kill + 1 }, () => 'started'));
      const run = found[kill]?.run_id as string;
      expect(await runEnded(application, run, 60_000)).toMatchObject({ status: 'succeeded', exit_code: 0 });
      expect(await runLog(application, run)).toEqual([String(index)]);
    }
  }
  const [counted] = await plant.sql(
    `select count(*)::int as runs from runs where trigger_type = 'schedule' and application_id = $1`,
    [application.id],
  );
  expect(counted).toEqual({ runs: SCHEDULES * KILLS });
}, 400_000);

test('times that passed while it was down for two days start one run each', async () => {
  const { id } = await application.post('/schedules', { name: 'down', cron: '*/10 * * * *', command: 'echo late' });
  await plant.kill();
  await makeDue(plant, id, '2 days');
  await plant.start();
  const [only] = await waitFor('the decision', async () => {
    const all = await firings(plant, id);
    return all.length ? all : null;
  });
  expect(only).toMatchObject({ outcome: 'started', reason: expect.stringMatching(/makes up for them/) });
  expect(only?.missed_count).toBeGreaterThan(280);
  expect(await runEnded(application, only?.run_id as string)).toMatchObject({ status: 'succeeded' });
  const schedule = await application.get(`/schedules/${id}`);
  expect(schedule).toMatchObject({ last_run: { status: 'succeeded' }, failures_in_a_row: 0 });
}, 120_000);
