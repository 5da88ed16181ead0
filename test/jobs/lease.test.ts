/** @tier heavy @quarter 3 @covers jobs/claim_loop.ts db/lease.ts */
/** @user any */
// One row, one worker: also when workers stop, stall and come back.
import { setTimeout as sleep } from 'node:timers/promises';
import { claimRow, purgeRow, recordColumns, releaseRow, renewLeases, settleRow } from '../../db/lease';
import { startWorkerProcess, type WorkerProcess } from '../support/processes/worker_process';
import { openWorkshop, until, type Workshop } from '../support/runner/workshop';

const LEASE_MS = 900;
const LOOP = { concurrency: 3, leaseMs: LEASE_MS, heartbeatMs: 250, marginMs: 200, pollMs: 100 };

let workshop: Workshop;
const workers: WorkerProcess[] = [];

beforeAll(async () => {
  workshop = await openWorkshop();
  await workshop.rows(
    'create table probe_log (id text, worker text, fence bigint, began_at timestamptz, ended_at timestamptz)',
  );
});
beforeEach(async () => {
  await workshop.rows('delete from probe_log');
  await workshop.rows('delete from schedules');
});
afterEach(async () => {
  for (const worker of workers.splice(0)) await worker.kill();
});
afterAll(() => workshop.close());

async function startProbe(stepMs: number, loop: Partial<typeof LOOP> = {}): Promise<WorkerProcess> {
  const worker = await startWorkerProcess({
    url: workshop.url,
    directory: workshop.directory,
    loop: { ...LOOP, ...loop },
    probe: { stepMs },
  });
  workers.push(worker);
  return worker;
}

async function addProbes(count: number): Promise<void> {
  await workshop.rows(`insert into schedules (id) select 'probe_' || n from generate_series(1, ?) as n`, [count]);
  await workshop.rows(`select pg_notify('due', 'schedules')`);
}

async function finished(): Promise<number> {
  return (await workshop.rows('select 1 from schedules where next_at is null')).length;
}

test('two workers share the rows and never work on one at the same time', async () => {
  const pair = [await startProbe(30), await startProbe(30)];
  await addProbes(12);
  // Changed while it is worked on, again and again: due at once, yet not for the other worker.
  for (let round = 0; round < 40; round++) {
    await workshop.change('schedules', `probe_${1 + (round % 12)}`, {});
    await sleep(15);
  }
  await until('all are settled', async () => (await finished()) === 12);
  const overlaps = `select a.id from probe_log a join probe_log b on a.id = b.id and a.fence < b.fence
    where b.began_at < coalesce(a.ended_at, 'infinity')`;
  expect(await workshop.rows(overlaps)).toEqual([]);
  const work = await workshop.rows<{ worker: string; steps: string }>(
    'select worker, count(*) as steps from probe_log group by worker',
  );
  expect(work.map(({ worker }) => worker).sort()).toEqual(pair.map(({ pid }) => String(pid)).sort());
  expect(
    await workshop.rows('select 1 from (select id, fence from probe_log group by 1, 2 having count(*) > 1) as twice'),
  ).toEqual([]);
  const [sum] = await workshop.rows<{ steps: string }>('select count(*) as steps from probe_log');
  expect(Number(sum?.steps)).toBeGreaterThan(25);
});

test('steps that are longer than the lease keep it by heartbeat', async () => {
  await startProbe(2 * LEASE_MS);
  await startProbe(2 * LEASE_MS);
  await addProbes(2);
  await until('both are settled', async () => (await finished()) === 2);
  expect(await workshop.rows('select fence from schedules')).toEqual([{ fence: 1 }, { fence: 1 }]);
});

test('the rows of a killed worker are taken up when its lease has ended', async () => {
  const first = await startProbe(500);
  await addProbes(1);
  await until('it is at work', async () => (await workshop.rows('select 1 from probe_log')).length === 1);
  await first.kill();
  const second = await startProbe(50);
  await until('another took over', async () => (await finished()) === 1);
  const log = await workshop.rows<{ worker: string; fence: number; ended_at: string | null }>(
    'select * from probe_log order by fence',
  );
  expect(log.map(({ worker, fence, ended_at }) => [worker, fence, ended_at !== null])).toEqual([
    [String(first.pid), 1, false],
    [String(second.pid), 2, true],
  ]);
  const [gap] = await workshop.rows<{ ms: number }>(
    'select extract(epoch from max(began_at) - min(began_at))::float8 * 1000 as ms from probe_log',
  );
  expect(gap?.ms).toBeGreaterThan(LEASE_MS - 50);
});

// With a heartbeat it notices by itself; without one nothing but the fence stands in its way.
test.each([250, 60_000])('a stalled worker that comes back writes nothing (heartbeat %d ms)', async (heartbeatMs) => {
  const stalled = await startProbe(500, { heartbeatMs });
  await addProbes(1);
  await until('it is at work', async () => (await workshop.rows('select 1 from probe_log')).length === 1);
  stalled.signal('SIGSTOP');
  const other = await startProbe(50);
  await until('another took over', async () => (await finished()) === 1);
  const before = await workshop.row('schedules', 'probe_1');
  stalled.signal('SIGCONT');
  await until('it sees that its lease is lost', async () => stalled.output().includes('another worker has the row'));
  expect(await workshop.row('schedules', 'probe_1')).toEqual(before);
  expect(before).toMatchObject({ observed: { worker: String(other.pid) }, fence: 2, lease_owner: null });
});

test('a worker that is told to stop finishes its step and gives everything back', async () => {
  const worker = await startProbe(400);
  await addProbes(1);
  await until('it is at work', async () => (await workshop.rows('select 1 from probe_log')).length === 1);
  expect(await worker.stop()).toBe(0);
  expect(await workshop.row('schedules', 'probe_1')).toMatchObject({
    next_at: null,
    lease_owner: null,
    observed: { worker: String(worker.pid) },
  });
});

test.each(['the same worker', 'another worker'])(
  'a lease that is over holds nothing, also when %s has the next one',
  async (next) => {
    const sql = workshop.database;
    const claim = (owner: string) => claimRow(sql, 'schedules', { owner, leaseMs: 1, deadlineMs: 60_000, avoid: [] });
    await addProbes(1);
    await workshop.rows('update schedules set deleted_at = now()');
    const over = (await claim('worker'))?.lease;
    await sleep(20);
    const current = (await claim(next === 'the same worker' ? 'worker' : 'other'))?.lease;
    if (!over || !current) throw new Error('the row could not be claimed');
    const before = await workshop.row('schedules', 'probe_1');

    expect(
      await settleRow(sql, over, { ending: 'done', columns: { driver: 'x' }, nextMs: null, error: null }, null),
    ).toBeNull();
    expect(await recordColumns(sql, over, { driver: 'x' })).toBe(false);
    expect(await purgeRow(sql, over)).toBe(false);
    await releaseRow(sql, over);
    expect(await workshop.row('schedules', 'probe_1')).toEqual(before);
    expect((await renewLeases(sql, 'schedules', over.owner, ['probe_1'], 1)).get('probe_1')).not.toBe(over.fence);

    expect(await recordColumns(sql, current, { driver: 'x' })).toBe(true);
    expect(await settleRow(sql, current, { ending: 'done', columns: {}, nextMs: null, error: null }, null)).toEqual({
      changed: false,
      status: null,
    });
    expect(await workshop.row('schedules', 'probe_1')).toMatchObject({
      driver: 'x',
      next_at: null,
      lease_owner: null,
      fence: 2,
    });
  },
);

test('a row whose worker died has its whole time again; one that fails keeps its deadline', async () => {
  const sql = workshop.database;
  const claim = (deadlineMs: number) =>
    claimRow(sql, 'schedules', { owner: 'worker', leaseMs: 1, deadlineMs, avoid: [] });
  await addProbes(1);
  const first = await claim(1_000);
  expect(first?.deadlineInMs).toBeGreaterThan(900);
  await settleRow(sql, first?.lease as never, { ending: 'failed', columns: {}, nextMs: 0, error: 'x' }, null);
  await sleep(20);
  const second = await claim(60_000);
  expect(second?.deadlineInMs).toBeLessThan(1_000);
  await sleep(20);
  expect((await claim(60_000))?.deadlineInMs).toBeGreaterThan(59_000);
});
