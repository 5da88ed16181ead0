/** @user any */
// Accounts take turns in the loop, however many rows one of them has, how slow its steps are, and how often they fail.
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError } from '../../core/driver';
import { claimRow } from '../../db/lease';
import { allJobs } from '../../jobs/all_jobs';
import type { LoopRow } from '../../jobs/job';
import { openTurns } from '../../core/accounts/turns';
import { ready, setUpLoop, start, statusOf, workshop } from '../support/deployments/loop_cases';
import { until } from '../support/runner/workshop';

setUpLoop();

/** prj_1 and prj_2 are of acc_1. */
const ACCOUNTS: Record<string, string> = { prj_1: 'acc_1', prj_2: 'acc_1', prj_3: 'acc_2', prj_4: 'acc_3' };

beforeAll(async () => {
  await workshop.rows(`insert into accounts (id, name) values ('acc_2', 'two'), ('acc_3', 'three')`);
  for (const project of ['prj_2', 'prj_3', 'prj_4'])
    await workshop.rows(
      `insert into projects (id, account_id, name, default_region, created_at, updated_at)
        values ('${project}', '${ACCOUNTS[project]}', '${project}', 'local', now(), now())`,
    );
});

const accountOf = (row: LoopRow): string => ACCOUNTS[(row as LoopRow & { project_id: string }).project_id] as string;

/** Volumes that are due since some seconds. */
const dueVolumes = (project_id: string, count: number, secondsAgo: number): Promise<string[]> =>
  workshop.addVolumes(count, { project_id, next_at: new Date(Date.now() - secondsAgo * 1000) });

test('an account with many due rows in two projects delays no other by more than a step', async () => {
  await dueVolumes('prj_1', 60, 60);
  await dueVolumes('prj_2', 60, 50);
  await dueVolumes('prj_3', 1, 1);
  const steps: string[] = [];
  start(async (row) => (steps.push(accountOf(row)), ready), {}, { concurrency: 1 });
  await until('all are available', async () => steps.length === 121);
  expect(steps.indexOf('acc_2')).toBeLessThan(2);
});

test('accounts with many due rows take turns, and one that comes later joins', async () => {
  await dueVolumes('prj_1', 100, 60);
  await dueVolumes('prj_3', 100, 10);
  const steps: string[] = [];
  let late = Infinity;
  start(
    async (row) => {
      steps.push(accountOf(row));
      if (steps.length === 20) {
        await dueVolumes('prj_4', 3, 0);
        late = steps.length;
        // While others have turns it is known for a moment who is due.
        await sleep(300);
      }
      return ready;
    },
    {},
    { concurrency: 1 },
  );
  await until('all are available', async () => steps.length === 203);
  const count = (account: string): number => steps.slice(0, 20).filter((one) => one === account).length;
  expect([count('acc_1'), count('acc_2')]).toEqual([10, 10]);
  const joined = steps.flatMap((account, index) => (account === 'acc_3' ? index : []));
  expect(joined.at(-1)).toBeLessThan(late + 12);
});

test('a row that is taken up while every place is taken counts as a turn', async () => {
  await dueVolumes('prj_1', 30, 60);
  await dueVolumes('prj_3', 30, 10);
  const steps: string[] = [];
  start(async (row) => (steps.push(accountOf(row)), await sleep(90), ready), {}, { concurrency: 1 });
  await until('half are available', async () => steps.length >= 30);
  const count = (account: string): number => steps.slice(0, 30).filter((one) => one === account).length;
  expect([count('acc_1'), count('acc_2')]).toEqual([15, 15]);
});

test('slow steps of one account in every slot keep no other waiting', async () => {
  const mine = await dueVolumes('prj_1', 10, 60);
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  let running = 0;
  start(
    async (row) => {
      if (accountOf(row) !== 'acc_1') return ready;
      running += 1;
      await gate;
      running -= 1;
      return ready;
    },
    {},
    { concurrency: 3 },
  );
  await until('its steps run', async () => running === 3);
  const others = await dueVolumes('prj_3', 3, 0);
  for (const id of others) await until('the other one is served', async () => (await statusOf(id)) === 'available');
  expect(running).toBe(3);
  release();
  for (const id of mine) await until('all are available', async () => (await statusOf(id)) === 'available');
});

test('failures of one account keep no other from the driver', async () => {
  await dueVolumes('prj_1', 8, 60);
  let failures = 0;
  start(async (row) => {
    if (accountOf(row) !== 'acc_1') return ready;
    failures += 1;
    throw new DriverError('transient', 'its server is down');
  });
  await until('the breaker has opened', async () => failures >= 5);
  const [id = ''] = await dueVolumes('prj_3', 1, 0);
  await until('the other one is served', async () => (await statusOf(id)) === 'available', 5_000);
});

test('the rows of every job have an account, or are of the platform', async () => {
  const limits = { owner: 'one', leaseMs: 1, deadlineMs: 1, avoid: [], passOver: ['acc_1'] };
  const ofPlatform: string[] = [];
  for (const { table, project } of allJobs()) {
    await claimRow(workshop.database, table, { ...limits, project });
    const isOfProject = workshop.database.tables.get(table)?.columns.includes('project_id');
    if (!project && !isOfProject) ofPlatform.push(table);
  }
  expect(ofPlatform).toEqual(['schedules']);
});

test('no other account is looked for again at once', () => {
  let now = 0;
  const turns = openTurns(() => now);
  const serve = (account: string): string[] => (turns.serve('runs', account), turns.served('runs'));
  expect(serve('acc_1')).toEqual(['acc_1']);
  turns.endRound('runs');
  // It is the only one, and stays so for a moment.
  expect([serve('acc_1'), serve('acc_1')]).toEqual([[], []]);
  now = 250;
  expect(serve('acc_1')).toEqual(['acc_1']);
  expect(serve('acc_2')).toEqual(['acc_1', 'acc_2']);
  turns.endRound('runs');
  expect([serve('acc_2'), serve('acc_1'), turns.served('certificates')]).toEqual([['acc_2'], [], []]);
});
