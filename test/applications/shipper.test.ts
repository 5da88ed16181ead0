/** @user any */
// What units print comes into the log: attributed, once, in order; over kills, restarts and outages.
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { mintId } from '../../core/ids';
import { createLog } from '../../core/log/log';
import { openLogBudget } from '../../core/log/log_budget';
import { driverContext } from '../../core/driver';
import { openRouterLines } from '../../server/agents/router_lines';
import { startShipper, type Shipper } from '../../server/agents/shipper';
import { openObserved, startShipperProcess, type Observed } from '../support/observers/observed';
import { until, withinMs } from '../support/builds/runtime';

const log = createLog('silent');
const budget = openLogBudget(1 << 20);
let observed: Observed;
let shipper: Shipper;

beforeAll(async () => {
  observed = await openObserved();
});
beforeEach(() => {
  shipper = startShipper({ database: observed.database, runtime: observed.trial.runtime, log, budget });
});
afterEach(() => shipper.stop());
afterAll(() => observed.close());

const count = (lines: number): string =>
  `i=0; while [ $i -lt ${lines} ]; do echo "line $i of $i$i$i$i$i$i"; i=$((i+1)); done`;
const counted = (lines: number): string[] =>
  Array.from({ length: lines }, (_, i) => `line ${i} of ${i}${i}${i}${i}${i}${i}`);

/** Room for all that it prints: beyond it the oldest lines go. */
const ROOM = { limits: { output_bytes: 64 << 20 } };

async function start(command: string, unitId?: string): Promise<string> {
  const id = unitId ?? (await observed.instance());
  await observed.trial.start(observed.trial.spec(id, command, ROOM));
  shipper.noticeUnit(id);
  return id;
}

describe('lines', () => {
  it('are in the log soon, as those of their instance', async () => {
    const id = await start('echo ready; echo ERROR: no >&2; sleep 60');
    await until(async () => (await observed.shipped(id)).length === 2, 5_000);
    const rows = await observed.sql(
      `select resource_id, project_id, application_id, preview_id, deployment_id, process_type, source, step, level,
        message from log_lines where instance_id = $1 order by message desc`,
      [id],
    );
    const { application, project } = observed;
    const origin = {
      resource_id: application.id,
      project_id: project,
      application_id: application.id,
      preview_id: null,
      deployment_id: application.deployment,
      process_type: 'web',
      source: 'app',
      step: null,
    };
    expect(rows).toEqual([
      { ...origin, level: 'info', message: 'ready' },
      { ...origin, level: 'error', message: 'ERROR: no' },
    ]);
    await observed.trial.runtime.destroy(id, driverContext(withinMs));
  });

  it('of builds and release commands are those of their deployment', async () => {
    const { deployment } = observed.application;
    for (const step of ['build', 'release']) {
      const id = `${deployment}.${step}`;
      await observed.trial.run(
        observed.trial.spec(id, `echo ${step}ing; printf 'no end'`, { kind: 'task', limits: { time_ms: 10_000 } }),
      );
      await shipper.shipRemaining(id);
    }
    const rows = await observed.sql(
      'select step, source, message, instance_id, deployment_id from log_lines where step is not null order by seq',
    );
    const line = (step: string, message: string): object => ({
      step,
      source: 'app',
      message,
      instance_id: null,
      deployment_id: deployment,
    });
    expect(rows).toEqual([
      line('build', 'building'),
      line('build', 'no end'),
      line('release', 'releaseing'),
      line('release', 'no end'),
    ]);
  });

  it('of a unit whose row is gone are left alone', async () => {
    const id = await start('echo lost; sleep 60', mintId('ins'));
    await shipper.shipRemaining(id);
    expect(await observed.sql('select 1 from log_positions where unit_id = $1', [id])).toEqual([]);
    await observed.trial.runtime.destroy(id, driverContext(withinMs));
  });
});

describe('lines beyond the budget of a log', () => {
  it.each(['instance', 'build'])('are dropped and counted, those of a unit of the kind %s too', async (kind) => {
    await shipper.stop();
    const { database, trial, application } = observed;
    shipper = startShipper({ database, runtime: trial.runtime, log, budget: openLogBudget(1) });
    const id = kind === 'build' ? `${application.deployment}.build` : await observed.instance();
    await trial.runtime.destroy(id, driverContext(withinMs));
    await observed.sql('delete from log_lines');
    await trial.start(trial.spec(id, count(50), ROOM));
    await trial.ended((await trial.runtime.find(id))!);
    await shipper.shipRemaining(id);
    const rows = await observed.sql<{ message: string }>('select message from log_lines order by seq');
    // 3600 bytes are 13 lines of 16 bytes and 256 more each.
    expect(rows.map(({ message }) => message)).toEqual([
      ...counted(13),
      '37 lines were not kept: more was printed than a log may take.',
    ]);
    await trial.runtime.destroy(id, driverContext(withinMs));
  });
});

describe('the end of a unit', () => {
  it('is waited for: every line is there, once', async () => {
    const id = await start(count(20_000));
    await shipper.shipRemaining(id);
    await observed.trial.ended((await observed.trial.runtime.find(id))!);
    await shipper.shipRemaining(id);
    expect(await observed.shipped(id)).toEqual(counted(20_000));
    await shipper.shipRemaining(id);
    expect(await observed.shipped(id)).toHaveLength(20_000);
  });

  it('is the beginning of another log under the same id', async () => {
    const id = await start('echo first run');
    await observed.trial.ended((await observed.trial.runtime.find(id))!);
    await shipper.shipRemaining(id);
    await observed.trial.runtime.destroy(id, driverContext(withinMs));
    await start('echo again run', id);
    await observed.trial.ended((await observed.trial.runtime.find(id))!);
    await shipper.shipRemaining(id);
    expect(await observed.shipped(id)).toEqual(['first run', 'again run']);
  });
});

it('each line comes once, however often the shipper is killed', async () => {
  await shipper.stop();
  const id = await observed.instance();
  await observed.trial.start(observed.trial.spec(id, count(40_000), ROOM));
  const known = async (): Promise<number> =>
    (await observed.sql<{ n: number }>('select count(*)::int as n from log_lines where instance_id = $1', [id]))[0]!.n;
  for (const ms of [0, 7, 20, 45]) {
    const before = await known();
    const child = await startShipperProcess(observed);
    await until(async () => (await known()) > before);
    await sleep(ms);
    await child.kill();
  }
  expect(await known()).toBeLessThan(40_000);
  await observed.trial.ended((await observed.trial.runtime.find(id))!);
  shipper = startShipper({ database: observed.database, runtime: observed.trial.runtime, log, budget });
  await shipper.shipRemaining(id);
  expect(await observed.shipped(id)).toEqual(counted(40_000));
}, 60_000);

it('two of them at once write no line twice', async () => {
  const other = startShipper({ database: observed.database, runtime: observed.trial.runtime, log, budget });
  const id = await start(count(10_000));
  await observed.trial.ended((await observed.trial.runtime.find(id))!);
  await until(async () => (await observed.shipped(id)).length >= 10_000);
  await other.stop();
  expect(await observed.shipped(id)).toEqual(counted(10_000));
}, 30_000);

it('a database that is away is waited for', async () => {
  const name = new URL(observed.url).pathname.slice(1);
  const admin = new Client({ connectionString: process.env.TEST_ADMIN_URL });
  await admin.connect();
  const id = await start(`echo before; sleep 1; ${count(500)}; sleep 60`);
  await until(async () => (await observed.shipped(id)).length === 1, 5_000);
  await admin.query(`alter database "${name}" with allow_connections false`);
  await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
  await sleep(2_500);
  await expect(shipper.shipRemaining(id)).rejects.toBeDefined();
  await admin.query(`alter database "${name}" with allow_connections true`);
  await admin.end();
  await until(async () => (await observed.shipped(id)).length === 501, 10_000);
  expect(await observed.shipped(id)).toEqual(['before', ...counted(500)]);
  await observed.trial.runtime.destroy(id, driverContext(withinMs));
}, 30_000);

it('what was copied is let go of in the files', async () => {
  const id = await start(`head -c 9000000 /dev/zero | tr '\\0' 'x' | fold -w 1000; sleep 60`);
  await until(async () => (await observed.shipped(id)).length >= 8_999, 15_000);
  const lines = async (): Promise<number> => (await observed.trial.lines(id)).length;
  await until(async () => (await lines()) < 5_000);
  await observed.trial.runtime.destroy(id, driverContext(withinMs));
}, 30_000);

describe('router lines', () => {
  const access = (more: object = {}): Parameters<ReturnType<typeof openRouterLines>['line']>[0] => ({
    ...{
      at: new Date(),
      application_id: observed.application.id,
      preview_id: null,
      instance_id: null,
      method: 'GET',
      host: 'a.example.com',
      path: '/orders',
      status: 200,
      duration_ms: 12.4,
      bytes_sent: 512,
    },
    ...{ client_address: '192.0.2.1', request_id: 'req_1', reason: null, ...more },
  });
  const written = (): Promise<object[]> =>
    observed.sql(
      `select instance_id, deployment_id, process_type, source, level, message from log_lines where source <> 'app'
        order by seq`,
    );
  beforeEach(() => observed.sql(`delete from log_lines where source <> 'app'`));

  it('say what was asked and answered', async () => {
    const lines = openRouterLines({ database: observed.database, log, budget });
    const instance = await observed.instance();
    lines.line(access({ instance_id: instance }));
    lines.line(access({ status: 503, reason: 'no_target' }));
    lines.line(access({ application_id: mintId('app') }));
    await until(async () => (await written()).length === 2, 3_000);
    expect(await written()).toEqual([
      {
        instance_id: instance,
        deployment_id: observed.application.deployment,
        process_type: 'web',
        source: 'router',
        level: 'info',
        message: 'GET /orders 200 12ms 512B host=a.example.com ip=192.0.2.1 request_id=req_1',
      },
      {
        instance_id: null,
        deployment_id: null,
        process_type: null,
        source: 'router',
        level: 'error',
        message: 'GET /orders 503 12ms 512B host=a.example.com ip=192.0.2.1 request_id=req_1 reason=no_target',
      },
    ]);
    await lines.close();
  });

  it('are left out and counted where there are too many', async () => {
    const lines = openRouterLines({ database: observed.database, log, budget });
    for (let turn = 0; turn < 20_003; turn += 1) lines.line(access({ status: 500 }));
    await lines.close();
    const all = (await written()) as { source: string; message: string }[];
    expect(all.filter(({ source }) => source === 'router')).toHaveLength(20_000);
    expect(all.filter(({ source }) => source === 'system').map(({ message }) => message)).toEqual([
      '3 router lines were left out: requests arrived faster than lines could be stored.',
    ]);
  });

  it('are left out beyond the budget of the log', async () => {
    const lines = openRouterLines({ database: observed.database, log, budget: openLogBudget(1) });
    for (let turn = 0; turn < 20; turn += 1) lines.line(access({ status: 500 }));
    await lines.close();
    const all = (await written()) as { source: string; message: string }[];
    // 3600 bytes, 391 for each line.
    expect(all.filter(({ source }) => source === 'router')).toHaveLength(9);
    expect(all.find(({ source }) => source === 'system')?.message).toMatch(/^11 router lines were left out/);
  });

  it('are a thousand a second of one application at most, failures apart', async () => {
    const lines = openRouterLines({ database: observed.database, log, budget });
    for (let turn = 0; turn < 500; turn += 1) lines.line(access());
    lines.line(access({ status: 502 }));
    await lines.close();
    const all = (await written()) as { source: string; level: string; message: string }[];
    expect(all.filter(({ source, level }) => source === 'router' && level === 'info')).toHaveLength(400);
    expect(all.filter(({ source, level }) => source === 'router' && level === 'error')).toHaveLength(1);
    expect(all.find(({ source }) => source === 'system')?.message).toMatch(/^100 router lines were left out/);
  });
});
