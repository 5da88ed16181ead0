// What becomes of due times. The times are written into rows; the decisions are those of the loop.
import { limits } from '../../core/limits';
import { sweepScheduleFirings } from '../../models/runs/schedule/sweep';
import { deployed, type DeployedApplication } from '../support/deployments/deployed';
import { fire, fireNow, firings, makeDue, newSchedule, type Body } from '../support/runs/schedules';
import { startService, type TestService } from '../support/service';

let service: TestService;
let application: DeployedApplication;
let serial = 0;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"applications": 200, "runs": 1000}' } });
});
afterAll(() => service?.close());
beforeEach(async () => {
  application = await deployed(service, await newApplication());
});

async function newApplication(): Promise<string> {
  return (await service.call('POST', '/v2/applications', { body: { name: `firing-${(serial += 1)}` } })).body.id;
}

const get = async ({ id, application_id }: Body): Promise<Body> =>
  (await service.call('GET', `/v2/applications/${application_id}/schedules/${id}`)).body;
const runsOf = (id: string): Promise<Body[]> =>
  service.sql('select id, status, status_reason, cancel_requested_at from runs where trigger_id = $1 order by id', [
    id,
  ]);
const actions = async (id: string): Promise<string[]> =>
  (await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${id}`)).body.data
    .map(({ action }: Body) => action)
    .reverse();
const finish = (id: string, status = 'succeeded'): Promise<unknown> =>
  service.sql('update runs set status = $2, finished_at = now() where trigger_id = $1', [id, status]);

describe('a due time', () => {
  test('starts one run, and the next time is awaited', async () => {
    const schedule = await newSchedule(service, application.id, { command: 'npm run report', timeout_seconds: 60 });
    await fireNow(service, schedule.id);
    const [run] = await runsOf(schedule.id);
    expect(await get(schedule)).toMatchObject({
      next_run_at: schedule.next_run_at,
      last_run: { id: run.id, status: 'queued', finished_at: null },
      status_reason: null,
      failures_in_a_row: 0,
    });
    const answer = await service.call('GET', `/v2/applications/${application.id}/runs/${run.id}`);
    expect(answer.body).toMatchObject({
      command: 'npm run report',
      timeout_seconds: 60,
      process_type: 'web',
      application_type: 's-512mb',
      release_id: application.release,
      status_reason: null,
      trigger: { type: 'schedule', id: schedule.id },
    });
    expect(await firings(service, schedule.id)).toEqual([
      { outcome: 'started', reason: null, run_id: run.id, missed_count: 0 },
    ]);
    expect(await actions(run.id)).toEqual(['run.created']);
    expect(await actions(schedule.id)).toEqual(['schedule.created']);
  });

  test('that has not come does nothing', async () => {
    const { id } = await newSchedule(service, application.id);
    expect(await fire(service, id)).toBeGreaterThan(0);
    expect(await firings(service, id)).toEqual([]);
  });

  test('is decided once, however many try at the same moment', async () => {
    const { id } = await newSchedule(service, application.id, { concurrency: 'allow' });
    await makeDue(service, id);
    await Promise.all(Array.from({ length: 8 }, () => fire(service, id)));
    expect(await runsOf(id)).toHaveLength(1);
    expect(await firings(service, id)).toHaveLength(1);
  });

  test('cannot be decided again, even if the row forgot that it was', async () => {
    const { id } = await newSchedule(service, application.id, { concurrency: 'allow' });
    await makeDue(service, id);
    const [{ next_run_at }] = await service.sql('select next_run_at from cron_schedules where id = $1', [id]);
    await fire(service, id);
    await service.sql('update cron_schedules set next_run_at = $2 where id = $1', [id, next_run_at]);
    await expect(fire(service, id)).rejects.toThrow();
    expect(await runsOf(id)).toHaveLength(1);
  });

  test('of a deleted or disabled schedule, or of a deleted application, starts nothing', async () => {
    const [disabled, deleted, orphaned] = [
      await newSchedule(service, application.id),
      await newSchedule(service, application.id),
      await newSchedule(service, application.id),
    ];
    await service.call('PATCH', `/v2/applications/${application.id}/schedules/${disabled.id}`, {
      body: { enabled: false },
    });
    await makeDue(service, deleted.id);
    await service.call('DELETE', `/v2/applications/${application.id}/schedules/${deleted.id}`);
    await makeDue(service, orphaned.id);
    await service.call('DELETE', `/v2/applications/${application.id}`);
    for (const { id } of [disabled, deleted, orphaned]) {
      expect(await fire(service, id)).toBeNull();
      expect(await runsOf(id)).toEqual([]);
    }
  });
});

describe('a run that has not finished', () => {
  test.each(['forbid', 'allow', 'replace'])('meets a due time of a schedule with %s', async (concurrency) => {
    const schedule = await newSchedule(service, application.id, { concurrency });
    await fireNow(service, schedule.id, '2 seconds');
    const [first] = await runsOf(schedule.id);
    await service.sql(`update runs set status = 'running' where id = $1`, [first.id]);
    await fireNow(service, schedule.id);
    const runs = await runsOf(schedule.id);
    const outcomes = (await firings(service, schedule.id)).map(({ outcome }) => outcome);
    expect(runs).toHaveLength(concurrency === 'forbid' ? 1 : 2);
    expect(runs[0].cancel_requested_at !== null).toBe(concurrency === 'replace');
    expect(outcomes).toEqual(['started', concurrency === 'forbid' ? 'skipped' : 'started']);
    const skipped = concurrency === 'forbid' ? ['schedule.skipped'] : [];
    expect(await actions(schedule.id)).toEqual(['schedule.created', ...skipped]);
    const reason = concurrency === 'forbid' ? expect.stringMatching(/^The last run .+ had not finished/) : null;
    expect(await get(schedule)).toMatchObject({ status_reason: reason, failures_in_a_row: 0 });
  });

  test('that is replaced says why it was canceled', async () => {
    const { id } = await newSchedule(service, application.id, { concurrency: 'replace' });
    await fireNow(service, id, '2 seconds');
    await fireNow(service, id);
    expect(await runsOf(id)).toMatchObject([
      { status: 'canceled', status_reason: 'Canceled because its schedule started the next run.' },
      { status: 'queued' },
    ]);
  });

  test('once finished, no longer holds the next one up', async () => {
    const schedule = await newSchedule(service, application.id);
    await fireNow(service, schedule.id, '3 seconds');
    await fireNow(service, schedule.id, '2 seconds');
    await finish(schedule.id);
    await fireNow(service, schedule.id);
    expect((await firings(service, schedule.id)).map(({ outcome }) => outcome)).toEqual([
      'started',
      'skipped',
      'started',
    ]);
    expect(await get(schedule)).toMatchObject({ status_reason: null });
  });
});

describe('times that passed while the platform did not work', () => {
  test('start one run that says so', async () => {
    const schedule = await newSchedule(service, application.id, { cron: '0 * * * *' });
    await fireNow(service, schedule.id, '2 days');
    const [run, ...others] = await runsOf(schedule.id);
    expect(others).toEqual([]);
    expect(run.status_reason).toMatch(
      /^The platform did not work at 4[89] times between \S+Z and \S+Z\. This run makes up for them\.$/,
    );
    const found = await firings(service, schedule.id);
    expect(found).toEqual([
      { outcome: 'started', reason: run.status_reason, run_id: run.id, missed_count: expect.any(Number) },
    ]);
    expect([48, 47]).toContain(found[0]?.missed_count);
    expect(await actions(schedule.id)).toEqual(['schedule.created', 'schedule.missed']);
    expect(await get(schedule)).toMatchObject({ status_reason: run.status_reason, failures_in_a_row: 0 });
    expect(Date.parse((await get(schedule)).next_run_at)).toBeGreaterThan(Date.now());
  });

  test('start no run of a schedule that skips them, and it goes on', async () => {
    const schedule = await newSchedule(service, application.id, { cron: '0 0 29 2 *', missed: 'skip' });
    await fireNow(service, schedule.id, '2 days');
    expect(await runsOf(schedule.id)).toEqual([]);
    expect(await firings(service, schedule.id)).toEqual([
      {
        outcome: 'missed',
        reason: expect.stringMatching(/^The platform did not work at \S+Z, so the command did not run\.$/),
        run_id: null,
        missed_count: 0,
      },
    ]);
    expect(await actions(schedule.id)).toEqual(['schedule.created', 'schedule.missed']);
    await fireNow(service, schedule.id);
    expect(await runsOf(schedule.id)).toHaveLength(1);
    expect(await get(schedule)).toMatchObject({ failures_in_a_row: 0, status_reason: null });
  });

  test('do not take the current one from a schedule that skips them', async () => {
    const schedule = await newSchedule(service, application.id, { cron: '* * * * *', missed: 'skip' });
    await fireNow(service, schedule.id, '1 hour');
    expect(await runsOf(schedule.id)).toMatchObject([{ status: 'queued', status_reason: null }]);
    expect(await get(schedule)).toMatchObject({ status_reason: expect.stringMatching(/did not work at \d+ times/) });
  });

  test('are not said to be so where the platform worked for others', async () => {
    const other = await newSchedule(service, application.id);
    await fireNow(service, other.id);
    await service.sql(
      `update schedule_firings set fired_at = date_trunc('minute', now()) - interval '179 seconds'
        where schedule_id = $1`,
      [other.id],
    );
    const behind = async (missed: string): Promise<Body> => {
      const schedule = await newSchedule(service, application.id, { cron: '* * * * *', missed });
      await service.sql(
        `update cron_schedules set next_run_at = date_trunc('minute', now()) - interval '3 minutes', next_at = now()
          where id = $1`,
        [schedule.id],
      );
      await fire(service, schedule.id);
      return get(schedule);
    };
    expect((await behind('run_once')).status_reason).toMatch(
      /^The platform was overloaded at 3 times between \S+Z and \S+Z\. This run makes up for them\.$/,
    );
    expect((await behind('skip')).status_reason).toMatch(
      /^The platform was overloaded at 3 times between \S+Z and \S+Z, so the command did not run\.$/,
    );
  });

  test('are none where the platform is a few minutes late', async () => {
    const schedule = await newSchedule(service, application.id, { cron: '0 0 29 2 *', missed: 'skip' });
    await fireNow(service, schedule.id, `${limits.scheduleLateSecondsMax - 30} seconds`);
    expect(await runsOf(schedule.id)).toMatchObject([{ status_reason: null }]);
    expect(await actions(schedule.id)).toEqual(['schedule.created']);
  });
});

describe('a due time that can start no run', () => {
  async function failedFor(schedule: Body, reason: RegExp): Promise<void> {
    await fireNow(service, schedule.id, '2 seconds');
    await fireNow(service, schedule.id);
    expect(await firings(service, schedule.id)).toEqual(
      [1, 2].map(() => ({ outcome: 'failed', reason: expect.stringMatching(reason), run_id: null, missed_count: 0 })),
    );
    expect(await actions(schedule.id)).toEqual(['schedule.created', 'schedule.missed', 'schedule.missed']);
    expect(await get(schedule)).toMatchObject({
      failures_in_a_row: 2,
      status_reason: expect.stringMatching(reason),
      next_run_at: schedule.next_run_at,
    });
  }

  test('without a release in service says so', async () => {
    const schedule = await newSchedule(service, await newApplication());
    await failedFor(schedule, /^The application has no release in service\. Deploy it first\.$/);
  });

  test('for a stopped application says so', async () => {
    const stopped = await deployed(service, await newApplication(), 'stopped');
    await failedFor(await newSchedule(service, stopped.id), /^The application is stopped\. Start the application/);
  });

  test('with a process type that the release lacks says so', async () => {
    const schedule = await newSchedule(service, application.id, { process_type: 'nobody' });
    await failedFor(schedule, /has no process type nobody/);
  });

  test('over the limit of unfinished runs says so, and later ones run again', async () => {
    for (let count = 0; count < limits.unfinishedRunsPerApplication; count += 1)
      await service.call('POST', `/v2/applications/${application.id}/runs`, { body: { command: 'true' } });
    const schedule = await newSchedule(service, application.id);
    await failedFor(schedule, /^An application may have 10 unfinished runs\.$/);
    await service.sql(`update runs set status = 'canceled' where application_id = $1`, [application.id]);
    await fireNow(service, schedule.id);
    expect(await runsOf(schedule.id)).toHaveLength(1);
    expect(await get(schedule)).toMatchObject({ failures_in_a_row: 2, status_reason: null });
    await finish(schedule.id);
    expect(await get(schedule)).toMatchObject({ failures_in_a_row: 0 });
  });
});

test('failures are counted over runs and due times', async () => {
  const schedule = await newSchedule(service, application.id);
  await fireNow(service, schedule.id, '3 seconds');
  await finish(schedule.id, 'failed');
  await service.sql(`update applications set status = 'stopped' where id = $1`, [application.id]);
  await fireNow(service, schedule.id, '2 seconds');
  expect(await get(schedule)).toMatchObject({ failures_in_a_row: 2 });
});

test('what became of due times is forgotten after a week', async () => {
  const { id } = await newSchedule(service, application.id, { concurrency: 'allow' });
  await fireNow(service, id, '2 seconds');
  await fireNow(service, id);
  await service.sql(
    `update schedule_firings set fired_at = now() - interval '8 days' where schedule_id = $1
      and due_at = (select min(due_at) from schedule_firings where schedule_id = $1)`,
    [id],
  );
  await sweepScheduleFirings(service.platform.database);
  expect(await firings(service, id)).toHaveLength(1);
});
