/** @user any */
// The loop while the database is away, steps hang, and the process stops.
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { settled, type Job } from '../../jobs/job';
import { until } from '../support/runner/workshop';
import { loop, ready, runLoop, setUpLoop, start, statusOf, workshop } from '../support/deployments/loop_cases';

setUpLoop();

test('a step that ignores its signal loses its slot, and the row is tried again', async () => {
  let steps = 0;
  start(
    async () => (++steps === 1 ? new Promise<never>(() => {}) : ready),
    { stepMs: 100 },
    { concurrency: 1, leaseMs: 600, marginMs: 100, heartbeatMs: 200 },
  );
  const [id = ''] = await workshop.addVolumes(1);
  await until('it is available', async () => (await statusOf(id)) === 'available');
  expect(await workshop.row('volumes', id)).toMatchObject({ fence: 2 });
});

test('when every connection is cut, the loop comes back and goes on', async () => {
  let steps = 0;
  start(
    async (_, { sql }) => {
      steps++;
      await sql.query({ name: 'nap', text: 'select pg_sleep(0.05)' }, []);
      return ready;
    },
    {},
    { pollMs: 500 },
  );
  const cuts = 4;
  for (let cut = 0; cut < cuts; cut++) {
    await workshop.addVolumes(4);
    await sleep(60);
    await workshop.rows(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()`,
    );
    // The pool of this test must have seen it too.
    await sleep(50);
  }
  await until(
    'all are available',
    async () => (await workshop.rows(`select 1 from volumes where status = 'available'`)).length === 4 * cuts,
    25_000,
  );
  expect(steps).toBeGreaterThanOrEqual(4 * cuts);
  expect(await loop?.lagSeconds()).toBe(0);
});

test('a database that is away for a while is waited for without spinning', async () => {
  start(async () => ready);
  await sleep(200);
  const name = new URL(workshop.url).pathname.slice(1);
  const admin = new Client({ connectionString: process.env.TEST_ADMIN_URL });
  await admin.connect();
  const warn = jest.spyOn(workshop.parts.log, 'warn');
  await admin.query(`alter database "${name}" allow_connections false`);
  await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
  await sleep(1_500);
  const refused = workshop.rows('select 1').then(
    () => 'answered',
    () => 'refused',
  );
  expect(await refused).toBe('refused');
  await admin.query(`alter database "${name}" allow_connections true`);
  await admin.end();
  expect(warn.mock.calls.length).toBeGreaterThan(0);
  expect(warn.mock.calls.length).toBeLessThan(20);
  warn.mockRestore();
  const [id = ''] = await workshop.addVolumes(1);
  await until('it is available', async () => (await statusOf(id)) === 'available');
});

test('lagSeconds is the age of the oldest row that nobody has taken', async () => {
  start(async () => new Promise<never>(() => {}), {}, { concurrency: 1, graceMs: 10, marginMs: 10, pollMs: 50 });
  await workshop.addVolumes(1, { next_at: new Date(Date.now() - 60_000) });
  await until(
    'the slot is taken',
    async () => (await workshop.rows('select 1 from volumes where lease_owner is not null')).length === 1,
  );
  expect(await loop?.lagSeconds()).toBe(0);
  await workshop.addVolumes(1, { next_at: new Date(Date.now() - 30_000) });
  expect(await loop?.lagSeconds()).toBeGreaterThan(29);
  expect(await loop?.lagSeconds()).toBeLessThan(40);
});

test('stopping aborts what does not end in time and gives the row back untouched', async () => {
  start(
    async (_, { signal }) => {
      await sleep(60_000, undefined, { signal });
      return ready;
    },
    {},
    { graceMs: 100 },
  );
  const [id = ''] = await workshop.addVolumes(1);
  await until(
    'the step has begun',
    async () => (await workshop.rows('select 1 from volumes where lease_owner is not null')).length === 1,
  );
  const began = performance.now();
  await loop?.stop();
  expect(performance.now() - began).toBeLessThan(20_000);
  expect(await workshop.row('volumes', id)).toMatchObject({
    status: 'provisioning',
    attempts: 0,
    lease_owner: null,
    last_error: null,
  });
});

test('slots go round the tables: a long queue in one does not starve the other', async () => {
  const order: string[] = [];
  const job = (table: string): Job => ({
    table,
    async reconcile() {
      order.push(table);
      await sleep(10);
      return settled();
    },
  });
  await workshop.addVolumes(20);
  await workshop.rows(`insert into schedules (id) values ('fair_1'), ('fair_2')`);
  runLoop({ concurrency: 1, pollMs: 100, jobs: [job('volumes'), job('schedules')] });
  await until('all had their turn', async () => order.length === 22);
  expect(order.lastIndexOf('schedules')).toBeLessThan(6);
});
