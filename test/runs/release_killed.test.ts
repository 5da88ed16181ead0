/** @tier heavy @quarter 1 @covers jobs/deployments/deployment/command.ts models/runs/run/release_run.ts */
/** @user any */
// Release commands whose control plane is killed with -9, that meet a limit, and that an earlier version started.
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../core/driver';
import { openLocalRuntime } from '../../drivers/runtime/local';
import { nothingOrphaned } from '../support/processes/bad_days';
import { startPlant, type Plant } from '../support/processes/bad_days_program';
import type { TestApplication } from '../support/deployments/deploy';
import { procfileApp } from '../support/git/repositories';
import { processesWith } from '../support/processes/processes';
import { runIs, runLog, type RunBody } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';
import { withConfig } from '../support/config';

const LIMITS = { BUILD_TIMEOUT_SECONDS: '40', ...withConfig({ buildOutputMb: 1 }) };
const HEADER = '-----> Running the release command';

let plant: Plant;
beforeAll(async () => {
  plant = await startPlant(LIMITS);
}, 60_000);
afterAll(() => plant?.close(), 90_000);

const releaseRuns = async (application: TestApplication): Promise<RunBody[]> =>
  (await application.get('/runs?trigger_type=release')).data;

async function releasing(application: TestApplication): Promise<{ deployment: string; run: string }> {
  const { id: deployment } = await application.ask();
  const [run] = await waitFor('the run', async () => {
    const runs = await releaseRuns(application);
    return runs.length ? runs : null;
  });
  await runIs(application, run.id, 'running');
  return { deployment, run: run.id };
}

test('killed at any moment, the command ran once and its end is that of the deployment', async () => {
  const succeeding = await plant.application(procfileApp('good', 'echo once; sleep 0.3; echo end'));
  const failing = await plant.application(procfileApp('bad', 'sh -c "echo once; sleep 0.3; echo no table; exit 4"'));
  for (let ms = 100; ms <= 1_900; ms += 200) {
    const asked = await Promise.all([succeeding.ask(), failing.ask()]);
    await sleep(ms);
    await plant.kill();
    await plant.start();
    const [good, bad] = await Promise.all([succeeding.ended(asked[0].id), failing.ended(asked[1].id)]);
    expect([good.status, good.status_reason]).toEqual(['active', null]);
    expect([bad.status, bad.status_reason]).toEqual([
      'failed',
      expect.stringMatching(/^The release command `.*` ended with exit code 4: no table\.$/),
    ]);
    for (const [application, { id }, last] of [
      [succeeding, good, 'end'],
      [failing, bad, 'no table'],
    ] as const) {
      const [run, ...others] = (await releaseRuns(application)).filter(({ trigger }) => trigger.id === id);
      expect(others).toEqual([]);
      expect(await runLog(application, run.id)).toEqual([HEADER, 'once', last]);
    }
  }
}, 180_000);

test('killed while its deployment is canceled, it is canceled all the same', async () => {
  const mark = 'canceled-and-killed';
  const application = await plant.application(procfileApp('canceled', `sh -c "echo ready; sleep 600; : ${mark}"`));
  const { deployment, run } = await releasing(application);
  await application.post(`/deployments/${deployment}/cancel`);
  await plant.kill();
  await plant.start();
  await runIs(application, run, 'canceled');
  await waitFor('no process of it', async () => processesWith(mark).length === 0);
  await nothingOrphaned(plant);
}, 90_000);

test('with its application it goes', async () => {
  const application = await plant.application(procfileApp('gone', 'sleep 600'));
  const { run } = await releasing(application);
  expect((await plant.call('DELETE', `/v2/applications/${application.id}`)).status).toBe(204);
  await plant.kill();
  await plant.start();
  await waitFor('its rows are gone', async () => {
    const rows = await plant.sql(
      'select 1 from applications where id = $1 union all select 1 from runs where id = $2',
      [...[application.id, run]],
    );
    return rows.length === 0;
  });
  expect(processesWith(run)).toEqual([]);
}, 60_000);

test.each([
  [
    'sh -c "echo waiting for a lock; sleep 600"',
    'timed_out',
    'was ended because the deployment took longer than 40 seconds.',
    ' Its last output: waiting for a lock.',
  ],
  [
    'yes a long line of output that says nothing at all',
    'failed',
    'was ended because it printed more than 1 MB. Make it print less.',
    '',
  ],
])(
  'a limit that %s meets is the reason of the deployment',
  async (command, status, reason, more) => {
    const application = await plant.application(procfileApp('limited', command));
    const { id } = await application.ask();
    expect(await application.ended(id, 90_000)).toMatchObject({
      status: 'failed',
      status_reason: `The release command \`${command}\` ${reason}${more}`,
    });
    expect((await releaseRuns(application))[0]).toMatchObject({
      status,
      status_reason: `The release command ${reason}`,
    });
  },
  120_000,
);

test('what an earlier version started as a unit of the deployment goes on, and is not started again', async () => {
  const application = await plant.application(procfileApp('earlier', 'sleep 600'));
  const { deployment, run } = await releasing(application);
  await plant.kill();
  const runtime = await openLocalRuntime({
    directory: path.join(plant.runtimeDir, 'units'),
    ports: [20_000, 20_000],
    sandbox: 'auto',
    tenantUidBase: 700_000,
  });
  await runtime.destroy(run, driverContext(20_000));
  await plant.sql('delete from runs where id = $1', [run]);
  await runtime.start(
    {
      ...{
        id: `${deployment}.release`,
        kind: 'task',
        command: 'echo earlier; sleep 1',
        root_directory: '.',
        mounts: [],
      },
      directory: path.join(plant.runtimeDir, 'releases', deployment),
      ...{ env: {}, tenant: 1 },
      limits: { memory_mb: 512, cpus: null, processes: 64, time_ms: 30_000, output_bytes: 2 ** 20, disk_mb: null },
    },
    driverContext(20_000),
  );
  await runtime.close();
  await plant.start();
  const ended = await application.ended(deployment);
  expect([ended.status, ended.status_reason]).toEqual(['active', null]);
  expect(await application.log(deployment)).toEqual(
    expect.arrayContaining(['earlier', '-----> Starting the new version']),
  );
  expect(await releaseRuns(application)).toEqual([]);
}, 90_000);
