/** @tier heavy @quarter 3 @covers jobs/workflow.ts jobs/runs */
// Each step of a run in turn: the control plane is killed with -9 in it and at its end, the step fails, and the run is
// canceled in it. The list itself is looped over, so a new step is tested here.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { steps } from '../../jobs/runs/run/steps';
import { nothingOrphaned } from '../support/processes/bad_days';
import { startPlant, type Plant } from '../support/processes/bad_days_program';
import type { TestApplication } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { runEnded, runLog, startRun, type RunBody } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';
import { openStepOrders, type StepOrder } from '../support/workflows/step_orders';

const NAMES = steps.map(({ name }) => name);
const KILLS = NAMES.flatMap((step) => (['within', 'after'] as const).map((when) => [when, step] as const));
const WITHIN_MS = 90_000;
const orders = openStepOrders();

let plant: Plant;
let application: TestApplication;
beforeAll(async () => {
  plant = await startPlant(orders.settings);
  application = await plant.application(nodeApp('one'));
  expect((await application.deploy()).status).toBe('active');
}, WITHIN_MS);
afterAll(() => plant?.close(), WITHIN_MS);

/** Starts a run, and gives an order for one of its steps. */
async function runWith(command: string, order: Omit<StepOrder, 'workflow'>): Promise<RunBody> {
  orders.give(application.id, { workflow: 'run', ...order });
  const run = await startRun(application, command);
  if (order.step === 'remove') await replayed(run.id);
  await orders.met(application.id);
  return run;
}

/** Its end is so long ago that nobody attaches to it any more. */
async function replayed(id: string): Promise<void> {
  await runEnded(application, id);
  await plant.sql(`update runs set finished_at = finished_at - interval '2 minutes', next_at = now() where id = $1`, [
    id,
  ]);
}

async function nothingLeftOf(id: string): Promise<void> {
  await replayed(id);
  const unit = path.join(plant.runtimeDir, 'units', id);
  await waitFor('no unit', () => Promise.resolve(!existsSync(unit)));
  // Else the next order would be met by this run, when its lease ends.
  const isAtRest = 'select 1 from runs where id = $1 and lease_until is null and next_at is null';
  await waitFor('the row at rest', async () => (await plant.sql(isAtRest, [id])).length === 1, 60_000);
  await nothingOrphaned(plant);
}

test.each(KILLS)(
  'killed %s the step %s, a run happens once, and ends as its command did',
  async (when, step) => {
    const { id } = await runWith('echo once; sleep 0.5; exit 5', { step, act: `kill_${when}`, afterMs: 50 });
    await plant.kill();
    await plant.start();
    expect(await runEnded(application, id)).toMatchObject({ status: 'failed', exit_code: 5, signal: null });
    expect(await runLog(application, id)).toEqual(['once']);
    await nothingLeftOf(id);
  },
  WITHIN_MS,
);

test.each(NAMES)(
  'a failure of the step %s is the reason of the run, unless it had ended before',
  async (step) => {
    const { id } = await runWith('echo once', { step, act: 'fail' });
    const ended = await runEnded(application, id);
    if (step === 'remove') expect(ended).toMatchObject({ status: 'succeeded', exit_code: 0, status_reason: null });
    else expect(ended).toMatchObject({ status: 'failed', status_reason: 'The test broke it.' });
    await nothingLeftOf(id);
  },
  WITHIN_MS,
);

test.each(['start', 'wait'])(
  'canceled in the step %s, it ends',
  async (step) => {
    const { id } = await runWith('sleep 600', { step, act: 'wait', afterMs: 2_000 });
    await application.post(`/runs/${id}/cancel`);
    expect(await runEnded(application, id)).toMatchObject({ status: 'canceled' });
    await nothingLeftOf(id);
  },
  WITHIN_MS,
);
