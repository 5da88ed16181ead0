/** @tier both @quarter 2 @covers jobs/runs/schedule.ts models/runs/schedule */
// Many schedules that are due in the same second: two workers, one run each, and an API that answers meanwhile. There
// are 200 of them, 5,000 in a heavy run.
import { setTimeout as sleep } from 'node:timers/promises';
import { startLoop, type Loop } from '../../jobs/loop';
import { job as scheduleJob } from '../../jobs/runs/schedule';
import { deployed } from '../support/deployments/deployed';
import { isHeavyRun } from '../support/processes/kills';
import { makeDue, newSchedule } from '../support/runs/schedules';
import { startService, type TestService } from '../support/service';
import { until } from '../support/runner/workshop';

const PER_APPLICATION = 10;
const APPLICATIONS = isHeavyRun ? 500 : 20;
const SCHEDULES = APPLICATIONS * PER_APPLICATION;
/** Of the request that takes longest. */
const ANSWER_MS_MAX = 2_000;

let service: TestService;
const loops: Loop[] = [];

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"applications": null, "runs": null, "schedules": null}' } });
});
afterAll(async () => {
  for (const loop of loops) await loop.stop();
  await service?.close();
});

function startWorker(): Loop {
  const { database, config, secrets, probes, log } = service.platform;
  const parts = { database, config, secrets, probes, log, listen: () => ({ close: async () => {} }) };
  const loop = startLoop({ ...parts, drivers: {} as never }, { jobs: [scheduleJob], pollMs: 100 });
  loops.push(loop);
  return loop;
}

/** The id of the n-th copy of a row, as SQL. */
const copyOf = (id: string): string => `left(${id}, 26) || lpad(n::text, 4, '0')`;

/** Copies one application that is deployed, and its schedule, as rows. */
async function makeMany(): Promise<void> {
  const made = await service.call('POST', '/v2/applications', { body: { name: 'pattern' } });
  const pattern = await deployed(service, made.body.id);
  const { id } = await newSchedule(service, pattern.id, { cron: '0 0 29 2 *' });
  const copy = async (table: string, where: string, changes: string, from: string): Promise<unknown> =>
    service.sql(
      `insert into ${table} select (jsonb_populate_record(r, ${changes})).* from ${table} r, ${from} where ${where}`,
    );
  await copy(
    'applications',
    `r.id = '${pattern.id}'`,
    `jsonb_build_object('id', ${copyOf('r.id')}, 'name', 'copy-' || n, 'tenant', r.tenant + 1000 + n,
      'default_hostname', n || '.' || r.default_hostname)`,
    `generate_series(1, ${APPLICATIONS}) n`,
  );
  await copy(
    'processes',
    `r.application_id = '${pattern.id}'`,
    `jsonb_build_object('id', ${copyOf('r.id')}, 'application_id', ${copyOf('r.application_id')})`,
    `generate_series(1, ${APPLICATIONS}) n`,
  );
  await copy(
    'cron_schedules',
    `r.id = '${id}'`,
    `jsonb_build_object('id', left(r.id, 24) || lpad(n::text, 4, '0') || lpad(m::text, 2, '0'),
      'application_id', ${copyOf('r.application_id')}, 'name', 's' || m,
      'next_run_at', now() - interval '1 second', 'next_at', now())`,
    `generate_series(1, ${APPLICATIONS}) n, generate_series(1, ${PER_APPLICATION}) m`,
  );
}

test(`${SCHEDULES} schedules that are due at once run once each, and requests are answered meanwhile`, async () => {
  await makeMany();
  const begun = Date.now();
  startWorker();
  startWorker();
  let done = 0;
  let slowest = 0;
  while (done < SCHEDULES) {
    const asked = Date.now();
    expect((await service.call('GET', '/v2/applications?limit=20')).status).toBe(200);
    slowest = Math.max(slowest, Date.now() - asked);
    const [row] = await service.sql('select count(*)::int as done from schedule_firings');
    done = row.done;
    await sleep(50);
  }
  const seconds = (Date.now() - begun) / 1000;
  const counts = await service.sql(
    `select count(*)::int as runs, count(distinct trigger_id)::int as schedules from runs
        where trigger_type = 'schedule'`,
  );
  expect(counts).toEqual([{ runs: SCHEDULES, schedules: SCHEDULES }]);
  const [left] = await service.sql('select count(*)::int as due from cron_schedules where next_run_at <= now()');
  expect(left.due).toBe(0);
  expect(slowest).toBeLessThan(ANSWER_MS_MAX);
  if (isHeavyRun) console.log(`${SCHEDULES} schedules in ${seconds} s, slowest answer ${slowest} ms`);
}, 600_000);

test('a due time is met within the second by the loop, and a schedule that is enabled again is awaited', async () => {
  const made = await service.call('POST', '/v2/applications', { body: { name: 'punctual' } });
  const { id: application } = await deployed(service, made.body.id);
  const { id } = await newSchedule(service, application, { enabled: false });
  const place = `/v2/applications/${application}/schedules/${id}`;
  await service.call('PATCH', place, { body: { enabled: true } });
  await makeDue(service, id, '-1 second');
  await until('its run', async () => (await service.call('GET', place)).body.last_run !== null, 5_000);
  const [row] = await service.sql(
    `select extract(epoch from fired_at - due_at)::float8 as late from schedule_firings where schedule_id = $1`,
    [id],
  );
  expect(row.late).toBeGreaterThanOrEqual(0);
  expect(row.late).toBeLessThan(1);
});
