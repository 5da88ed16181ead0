// What the loop does when the world is not as it should be: outages, changes meanwhile, errors, deadlines, stops.
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { defineStates } from '../../core/states';
import { DriverError } from '../../drivers/driver';
import { failed, progressing, settled, type Job, type LoopRow } from '../../jobs/job';
import { startLoop, type Loop, type LoopOptions } from '../../jobs/loop';
import { openWorkshop, until, type Workshop } from '../support/workshop';

const states = defineStates({
  initial: ['provisioning'],
  transitional: ['provisioning'],
  moves: { provisioning: ['available', 'failed'], available: ['failed'], failed: ['available', 'provisioning'] },
});

let workshop: Workshop;
let loop: Loop | undefined;

beforeAll(async () => (workshop = await openWorkshop()));
afterEach(async () => {
  await loop?.stop();
  loop = undefined;
  await workshop.rows('delete from volumes');
});
afterAll(() => workshop.close());

/** A loop over the table of volumes with a job made for the test. */
function start(reconcile: Job['reconcile'], job: Partial<Job> = {}, options: Partial<LoopOptions> = {}): void {
  loop = startLoop(workshop.parts, {
    pollMs: 100,
    ...options,
    jobs: [{ table: 'volumes', states, ...job, reconcile }],
  });
}

async function statusOf(id: string): Promise<string | undefined> {
  return (await workshop.row<LoopRow>('volumes', id))?.status;
}

const ready = settled({ status: 'available', status_reason: null });

test('a notification starts the work; the poll is only insurance', async () => {
  start(async () => ready, {}, { pollMs: 60_000 });
  await sleep(300);
  const [id = ''] = await workshop.addVolumes(1);
  await until('it is available', async () => (await statusOf(id)) === 'available');
});

test('without a notification the poll finds the row', async () => {
  start(async () => ready);
  await sleep(200);
  const [id = ''] = await workshop.addVolumes(1, { next_at: new Date(Date.now() + 400) });
  await until('it is available', async () => (await statusOf(id)) === 'available');
});

test('a row changed during its step keeps its status and is worked on again at once', async () => {
  const sizes: unknown[] = [];
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  start(
    async (row) => {
      sizes.push((row as unknown as { size_gb: number }).size_gb);
      if (sizes.length === 1) await gate;
      return settled({ status: 'available', used_bytes: 100 * sizes.length });
    },
    {},
    { pollMs: 60_000 },
  );
  await sleep(300);
  const [id = ''] = await workshop.addVolumes(1);
  await until('the step has begun', async () => sizes.length === 1);
  await workshop.change('volumes', id, { size_gb: 7, status: 'failed' });
  release();
  await until('it was worked on again', async () => (await statusOf(id)) === 'available');
  expect(sizes).toEqual([2, 7]);
  expect(await workshop.row('volumes', id)).toMatchObject({ used_bytes: 200, next_at: null, fence: 2 });
});

test('a status that the states do not allow is not written', async () => {
  start(async () => settled({ status: 'provisioning', used_bytes: 5 }));
  const [id = ''] = await workshop.addVolumes(1, { status: 'available' });
  await until(
    'the step has ended',
    async () => (await workshop.row<{ used_bytes: number | null }>('volumes', id))?.used_bytes === 5,
  );
  expect(await statusOf(id)).toBe('available');
});

test('only what an answer shows changes the ETag, and the version is left to the API', async () => {
  const [id = ''] = await workshop.addVolumes(1);
  let step = 0;
  const answers = [
    settled({ status: 'available', used_bytes: 1 }),
    settled({ status: 'available', used_bytes: 1, observed: { n: 2 } }),
    settled({ status: 'available', used_bytes: 2 }),
  ];
  start(async () => answers[step++] ?? settled());
  const revisions: number[] = [];
  for (const [index] of answers.entries()) {
    await until(
      'a step was made',
      async () => (await workshop.row<{ next_at: unknown; fence: number }>('volumes', id))?.next_at === null,
    );
    const row = await workshop.row<{ observed_generation: number; version: number; fence: number }>('volumes', id);
    expect(row).toMatchObject({ version: 1, fence: index + 1 });
    revisions.push(row?.observed_generation ?? -1);
    await workshop.change('volumes', id, {});
  }
  expect(revisions).toEqual([1, 1, 2]);
});

test('transient errors are retried with backoff until the deadline, then the row fails until it changes', async () => {
  let broken = true;
  const tries: number[] = [];
  start(
    async () => {
      tries.push(performance.now());
      if (broken) throw new DriverError('transient', 'the disk did not answer');
      return ready;
    },
    { deadlineMs: 1_500 },
  );
  const [id = ''] = await workshop.addVolumes(1);
  await until('it has failed', async () => (await statusOf(id)) === 'failed');
  expect(tries.length).toBeGreaterThanOrEqual(3);
  expect(await workshop.row('volumes', id)).toMatchObject({
    status_reason: 'The platform gave up after 1 minute of retries. The disk did not answer.',
    next_at: null,
    last_error: 'the disk did not answer',
  });
  const count = tries.length;
  await sleep(400);
  expect(tries).toHaveLength(count);
  broken = false;
  await workshop.change('volumes', id, { size_gb: 3 });
  await until('it is available', async () => (await statusOf(id)) === 'available');
  expect(await workshop.row('volumes', id)).toMatchObject({
    status_reason: null,
    attempts: 0,
    deadline_at: null,
    last_error: null,
  });
});

test.each(['invalid', 'unsupported', 'conflict'] as const)('%s fails at once', async (reason) => {
  start(async () => Promise.reject(new DriverError(reason, 'it cannot be')));
  const [id = ''] = await workshop.addVolumes(1);
  await until('it has failed', async () => (await statusOf(id)) === 'failed');
  expect(await workshop.row('volumes', id)).toMatchObject({
    status_reason: 'It cannot be.',
    attempts: 1,
    next_at: null,
  });
});

test('an error of our own is tried again, and its text is not shown', async () => {
  start(async () => Promise.reject(new TypeError('x.y is not a function at /srv/app.js')), { deadlineMs: 300 });
  const [id = ''] = await workshop.addVolumes(1);
  await until('it has failed', async () => (await statusOf(id)) === 'failed');
  const row = await workshop.row<{ status_reason: string; last_error: string }>('volumes', id);
  expect(row?.status_reason).not.toMatch(/function|srv/);
  expect(row?.last_error).toMatch(/x\.y is not a function/);
});

test('a failed row is watched where the job asks for it, and a job may fail a row in its own words', async () => {
  const seen: boolean[] = [];
  start(
    async (_, { gaveUp }) => {
      seen.push(gaveUp);
      if (seen.length === 1) throw new DriverError('conflict', 'something is in the way');
      return seen.length < 4
        ? progressing(50)
        : seen.length === 4
          ? settled({ status: 'available', status_reason: null }, 50)
          : failed('The owner wants it so.');
    },
    { watchFailedMs: 50 },
  );
  const [id = ''] = await workshop.addVolumes(1);
  await until('it has failed again', async () => seen.length === 5 && (await statusOf(id)) === 'failed');
  expect(seen).toEqual([false, true, true, true, false]);
  expect(await workshop.row('volumes', id)).toMatchObject({ status_reason: 'The owner wants it so.', next_at: null });
});

test('tear-down is tried for ever and ends with the row', async () => {
  let tries = 0;
  start(
    async () => {
      if (++tries < 3) throw new DriverError(tries === 1 ? 'unauthorized' : 'transient', 'not now', 10);
      return { kind: 'gone' };
    },
    { deadlineMs: 1 },
  );
  const [id = ''] = await workshop.addVolumes(1, { status: 'available', deleted_at: new Date() });
  await until('the row is gone', async () => (await workshop.row('volumes', id)) === undefined);
});

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
  loop = startLoop(workshop.parts, { concurrency: 1, pollMs: 100, jobs: [job('volumes'), job('schedules')] });
  await until('all had their turn', async () => order.length === 22);
  expect(order.lastIndexOf('schedules')).toBeLessThan(6);
});
