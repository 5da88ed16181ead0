/** @tier both @quarter 2 @covers jobs/runs/schedule.ts models/runs/schedule */
// Many schedules that are due in the same second: two workers, one run each, and an API that answers meanwhile. There
// are 200 of them, 5,000 in a heavy run.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Loop } from '../../jobs/loop';
import { deployed } from '../support/deployments/deployed';
import { isHeavyRun } from '../support/processes/kills';
import {
  decidedCount,
  makeManySchedules,
  SCHEDULES_PER_APPLICATION,
  startScheduleWorker,
  WITHOUT_QUOTAS,
} from '../support/runs/many_schedules';
import { makeDue, newSchedule } from '../support/runs/schedules';
import { startService, type TestService } from '../support/service';
import { until } from '../support/runner/workshop';

const APPLICATIONS = isHeavyRun() ? 500 : 20;
const SCHEDULES = APPLICATIONS * SCHEDULES_PER_APPLICATION;
const DECIDED_WITHIN_MS = 60_000;

let service: TestService;
const loops: Loop[] = [];

beforeAll(async () => {
  service = await startService({ settings: WITHOUT_QUOTAS });
});
afterAll(async () => {
  for (const loop of loops) await loop.stop();
  await service?.close();
});

test(`${SCHEDULES} schedules that are due at once run once each, and requests are answered meanwhile`, async () => {
  await makeManySchedules(service, APPLICATIONS);
  loops.push(startScheduleWorker(service), startScheduleWorker(service));
  let [done, answers] = [0, 0];
  while (done < SCHEDULES) {
    expect((await service.call('GET', '/v2/applications?limit=20')).status).toBe(200);
    answers += 1;
    done = await decidedCount(service);
    await sleep(50);
  }
  // Between the first decision and the last; how long an answer takes says npm run bench:runs.
  expect(answers).toBeGreaterThan(1);
  const counts = await service.sql(
    `select count(*)::int as runs, count(distinct trigger_id)::int as schedules from runs
        where trigger_type = 'schedule'`,
  );
  expect(counts).toEqual([{ runs: SCHEDULES, schedules: SCHEDULES }]);
  const [left] = await service.sql('select count(*)::int as due from cron_schedules where next_run_at <= now()');
  expect(left.due).toBe(0);
}, 600_000);

test('many that are due at once in one application start as many runs as it may have unfinished', async () => {
  const made = await service.call('POST', '/v2/applications', { body: { name: 'crowded' } });
  const { id: application } = await deployed(service, made.body.id);
  const schedules = await Promise.all(Array.from({ length: 15 }, () => newSchedule(service, application)));
  const ids = schedules.map(({ id }) => id);
  await service.sql(
    `update cron_schedules set next_run_at = now() - interval '1 second', next_at = now(), generation = generation + 1
      where id = any($1)`,
    [ids],
  );
  const decisions = (): Promise<unknown[]> =>
    service.sql(
      `select outcome, reason, count(*)::int as count from schedule_firings where schedule_id = any($1)
        group by 1, 2 order by 3 desc`,
      [ids],
    );
  await until(
    'all are decided',
    async () => (await service.sql('select 1 from schedule_firings where schedule_id = any($1)', [ids])).length === 15,
    DECIDED_WITHIN_MS,
  );
  expect(await decisions()).toEqual([
    { outcome: 'started', reason: null, count: 10 },
    { outcome: 'failed', reason: 'An application may have 10 unfinished runs.', count: 5 },
  ]);
});

test('a due time is not met before it has come, and a schedule that is enabled again is awaited', async () => {
  const made = await service.call('POST', '/v2/applications', { body: { name: 'punctual' } });
  const { id: application } = await deployed(service, made.body.id);
  const { id } = await newSchedule(service, application, { enabled: false });
  const place = `/v2/applications/${application}/schedules/${id}`;
  await service.call('PATCH', place, { body: { enabled: true } });
  await makeDue(service, id, '-1 second');
  await until('its run', async () => (await service.call('GET', place)).body.last_run !== null, DECIDED_WITHIN_MS);
  const [row] = await service.sql(
    `select extract(epoch from fired_at - due_at)::float8 as late from schedule_firings where schedule_id = $1`,
    [id],
  );
  expect(row.late).toBeGreaterThanOrEqual(0);
});

test('schedules of one account delay none of another by more than a few decisions', async () => {
  for (const loop of loops.splice(0)) await loop.stop();
  // The copies of the first test: 200 of one account, which are due before the one of another.
  const made = await service.call('POST', '/v2/applications', { body: { name: 'neighbour' } });
  const { id: application } = await deployed(service, made.body.id);
  const neighbour = await newSchedule(service, application);
  await service.sql(`insert into accounts (id, name) values ('acc_neighbour', 'neighbour')`);
  await service.sql(
    `insert into projects select (jsonb_populate_record(p, '{"id": "prj_neighbour",
    "account_id": "acc_neighbour", "name": "neighbour"}')).* from projects p where id = $1`,
    [service.project],
  );
  await service.sql(`update cron_schedules set project_id = 'prj_neighbour' where id = $1`, [neighbour.id]);
  await service.sql('truncate schedule_firings');
  await service.sql(
    `update cron_schedules set next_run_at = now() - interval '30 seconds',
    next_at = now() - interval '30 seconds' where id <> $1 and enabled`,
    [neighbour.id],
  );
  await makeDue(service, neighbour.id, '1 second');
  loops.push(startScheduleWorker(service));
  const firings = () =>
    service.sql<{ schedule_id: string }>('select schedule_id from schedule_firings order by fired_at');
  await until('it is decided', async () => (await firings()).some(({ schedule_id: id }) => id === neighbour.id));
  expect((await firings()).findIndex(({ schedule_id: id }) => id === neighbour.id)).toBeLessThan(10);
}, 120_000);
