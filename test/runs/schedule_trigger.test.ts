// Runs that are started by hand, and what a schedule shows of its runs.
import { deployed, type DeployedApplication } from '../support/deployments/deployed';
import { newSchedule, type Body } from '../support/runs/schedules';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let application: string;
let serial = 0;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"applications": 200}' } });
});
afterAll(() => service?.close());
beforeEach(async () => {
  application = await newApplication();
});

async function newApplication(): Promise<string> {
  return (await service.call('POST', '/v2/applications', { body: { name: `trigger-${(serial += 1)}` } })).body.id;
}

const at = (path = '', id = application): string => `/v2/applications/${id}/schedules${path}`;
const get = async (id: string): Promise<Body> => (await service.call('GET', at(`/${id}`))).body;
const patch = (id: string, body: object): Promise<Answer> => service.call('PATCH', at(`/${id}`), { body });
const trigger = (id: string, options: object = {}): Promise<Answer> =>
  service.call('POST', at(`/${id}/trigger`), options);

describe('trigger', () => {
  let ready: DeployedApplication;

  beforeEach(async () => {
    ready = await deployed(service, application);
  });

  test('starts a run of the schedule, and leaves its next time', async () => {
    const schedule = await newSchedule(service, ready.id, { command: 'npm run report', timeout_seconds: 60 });
    const { status, body } = await trigger(schedule.id);
    expect(status).toBe(201);
    expect(body).toMatchObject({
      id: expect.stringMatching(/^run_/),
      command: 'npm run report',
      timeout_seconds: 60,
      status: 'queued',
      trigger: { type: 'schedule', id: schedule.id },
    });
    expect(await get(schedule.id)).toEqual({
      ...schedule,
      last_run: { id: body.id, status: 'queued', finished_at: null },
    });
    const activity = await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${schedule.id}`);
    expect(activity.body.data[0]).toMatchObject({
      action: 'schedule.triggered',
      resource: { type: 'schedule', id: schedule.id, name: schedule.name },
    });
  });

  test('works for a schedule that is not enabled', async () => {
    const { id } = await newSchedule(service, ready.id, { enabled: false });
    expect((await trigger(id)).status).toBe(201);
  });

  test('is refused while a run is unfinished, allowed beside it, or replaces it', async () => {
    const { id } = await newSchedule(service, ready.id);
    const first = (await trigger(id)).body;
    expect(await trigger(id)).toMatchObject({
      status: 409,
      body: { code: 'resource_busy', resource_status: 'queued', detail: expect.stringMatching(/has not finished/) },
    });
    await patch(id, { concurrency: 'allow' });
    const second = (await trigger(id)).body;
    await patch(id, { concurrency: 'replace' });
    await service.sql(`update runs set status = 'running' where id = $1`, [second.id]);
    const third = (await trigger(id)).body;
    const rows = await service.sql(
      'select id, status, cancel_requested_at is not null as canceling from runs where trigger_id = $1 order by id',
      [id],
    );
    expect(rows).toEqual([
      { id: first.id, status: 'canceled', canceling: true },
      { id: second.id, status: 'running', canceling: true },
      { id: third.id, status: 'queued', canceling: false },
    ]);
  });

  test('needs a release in service', async () => {
    const bare = await newApplication();
    const { id } = await newSchedule(service, bare);
    const answer = await service.call('POST', at(`/${id}/trigger`, bare));
    expect(answer).toMatchObject({ status: 409, body: { code: 'invalid_state', resource_status: 'new' } });
  });

  test('with the same Idempotency-Key starts one run', async () => {
    const { id } = await newSchedule(service, ready.id, { concurrency: 'allow' });
    const options = { headers: { 'Idempotency-Key': 'once' } };
    const [first, second] = [await trigger(id, options), await trigger(id, options)];
    expect(second.body.id).toBe(first.body.id);
  });
});

describe('the end of a run', () => {
  test('is shown by its schedule, with a new ETag, and counts failures until one succeeds', async () => {
    const ready = await deployed(service, application);
    const { id } = await newSchedule(service, ready.id, { concurrency: 'allow' });
    const etags = new Set<string | null>();
    const ends = ['failed', 'timed_out', 'canceled', 'failed', 'succeeded', 'failed'];
    const counts: number[] = [];
    for (const status of ends) {
      const run = (await trigger(id)).body;
      await service.sql('update runs set status = $2, finished_at = $3 where id = $1', [
        ...[run.id, status, '2026-11-26T12:00:00.5Z'],
      ]);
      const answer = await service.call('GET', at(`/${id}`));
      etags.add(answer.headers.get('etag'));
      counts.push(answer.body.failures_in_a_row);
      expect(answer.body.last_run).toEqual({ id: run.id, status, finished_at: '2026-11-26T12:00:00.500Z' });
    }
    expect(counts).toEqual([1, 2, 2, 3, 0, 1]);
    expect(etags.size).toBe(ends.length);
  });

  test('of an earlier run does not become the last one', async () => {
    const ready = await deployed(service, application);
    const { id } = await newSchedule(service, ready.id, { concurrency: 'allow' });
    const [first, second] = [(await trigger(id)).body, (await trigger(id)).body];
    await service.sql(`update runs set status = 'failed', finished_at = now() where id = $1`, [first.id]);
    expect(await get(id)).toMatchObject({ last_run: { id: second.id, status: 'queued' }, failures_in_a_row: 1 });
  });
});
