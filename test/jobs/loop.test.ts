/** @user any */
// What the loop does when the world is not as it should be: outages, changes meanwhile, errors, deadlines, stops.
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError, EngineAway } from '../../core/driver';
import { failed, progressing, settled } from '../../jobs/job';
import { until } from '../support/runner/workshop';
import { ready, setUpLoop, start, statusOf, workshop } from '../support/deployments/loop_cases';

setUpLoop();

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

test('an engine that is away is waited for beyond the deadline, and told at once until it is back', async () => {
  const away = 'The cluster does not answer. The platform waits for it and goes on by itself.';
  let isAway = true;
  start(() => (isAway ? Promise.reject(new EngineAway('The cluster does not answer.')) : Promise.resolve(ready)), {
    deadlineMs: 1,
  });
  const [id = ''] = await workshop.addVolumes(1);
  const row = async () => (await workshop.row<Record<string, unknown>>('volumes', id))!;
  const again = () => workshop.rows(`update volumes set next_at = now() where id = '${id}'`);
  await until('it says so', async () => (await row()).status_reason === away);
  for (let count = 2; count <= 4; count += 1) {
    await again();
    await until('it is tried again', async () => (await row()).fence === count && (await row()).lease_owner === null);
  }
  expect(await row()).toMatchObject({ status: 'provisioning', status_reason: away, attempts: 0, deadline_at: null });
  isAway = false;
  await again();
  await until('it is available', async () => (await statusOf(id)) === 'available');
  expect(await row()).toMatchObject({ status_reason: null, last_error: null });
  const events = await workshop.rows<{ action: string }>(`select action from activity where resource_id = '${id}'`);
  expect(events.map(({ action }) => action).sort()).toEqual(['volume.available', 'volume.resumed', 'volume.waiting']);
});

test('a reason of its own that a resource has is kept while an engine is away', async () => {
  start(() => Promise.reject(new EngineAway('The cluster does not answer.')));
  const [id = ''] = await workshop.addVolumes(1, { status_reason: 'The disk is full.' });
  const row = async () => (await workshop.row<Record<string, unknown>>('volumes', id))!;
  await until('it was tried', async () => (await row()).last_error !== null);
  expect(await row()).toMatchObject({ status: 'provisioning', status_reason: 'The disk is full.' });
});
