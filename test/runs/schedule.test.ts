// Schedules as rows and requests. Their runs are in test/runs/schedule_trigger.test.ts, their due times in
// test/runs/schedule_firing.test.ts.
import { limits } from '../../core/limits';
import type { Body } from '../support/runs/schedules';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let application: string;
let serial = 0;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"applications": 200, "schedules": 60}' } });
});
afterAll(() => service?.close());
beforeEach(async () => {
  await service.sql('delete from cron_schedules');
  application = await newApplication();
});

async function newApplication(): Promise<string> {
  const made = await service.call('POST', '/v2/applications', { body: { name: `schedules-${(serial += 1)}` } });
  expect(made.status).toBe(201);
  return made.body.id;
}

const at = (path = '', id = application): string => `/v2/applications/${id}/schedules${path}`;
const create = (body: object, id = application, options: object = {}): Promise<Answer> =>
  service.call('POST', at('', id), { body: { name: 'nightly', cron: '@daily', command: 'true', ...body }, ...options });
const get = async (id: string): Promise<Body> => (await service.call('GET', at(`/${id}`))).body;
const patch = (id: string, body: object, options: object = {}): Promise<Answer> =>
  service.call('PATCH', at(`/${id}`), { body, ...options });
const trigger = (id: string, options: object = {}): Promise<Answer> =>
  service.call('POST', at(`/${id}/trigger`), options);

/** The next time at which it is `hour` in UTC. */
function nextHour(hour: number, now = new Date()): string {
  const today = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate(), hour);
  return new Date(today > now.getTime() ? today : today + 86_400_000).toISOString();
}

describe('a schedule', () => {
  test('runs in UTC, never beside itself, and makes up for missed times, unless it says otherwise', async () => {
    const { status, body } = await create({ cron: ' 0  2 * * * ' });
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.stringMatching(/^sch_/),
      project_id: service.project,
      application_id: application,
      name: 'nightly',
      cron: '0 2 * * *',
      time_zone: 'UTC',
      command: 'true',
      process_type: null,
      application_type: null,
      timeout_seconds: 3600,
      concurrency: 'forbid',
      missed: 'run_once',
      enabled: true,
      status_reason: null,
      next_run_at: nextHour(2),
      last_run: null,
      failures_in_a_row: 0,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect(await get(body.id)).toEqual(body);
  });

  test('has a time zone of its own', async () => {
    const { body } = await create({ cron: '0 2 * * *', time_zone: 'Asia/Tokyo' });
    expect(body.next_run_at).toBe(nextHour(17));
  });

  test('that is not enabled has no next time', async () => {
    const { body } = await create({ enabled: false });
    expect(body).toMatchObject({ enabled: false, next_run_at: null });
    expect((await patch(body.id, { enabled: true })).body.next_run_at).toBe(nextHour(0));
    expect((await patch(body.id, { enabled: false })).body.next_run_at).toBeNull();
  });

  test.each([
    ['cron', { cron: '@reboot' }, /must be one of @hourly/],
    ['cron', { cron: '0 0 30 2 *' }, /never due/],
    ['cron', { cron: 'TZ=Europe/Berlin 0 2 * * *' }, /Set `time_zone`/],
    ['cron', { cron: '0 0 2 * * *' }, /There is no field for seconds/],
    ['time_zone', { time_zone: 'Berlin' }, /such as Europe\/Berlin/],
    ['command', { command: ' ' }, /must not be blank/],
    ['name', { name: '' }, /./],
    ['timeout_seconds', { timeout_seconds: 86_401 }, /86400/],
    ['concurrency', { concurrency: 'sometimes' }, /./],
  ])('with a wrong %s is refused: %j', async (field, body, detail) => {
    expect(await create(body)).toMatchObject({
      status: 422,
      body: { code: 'validation_failed', errors: [{ field, detail: expect.stringMatching(detail) }] },
    });
  });

  test('needs a size that there is', async () => {
    const refused = { status: 422, body: { code: 'reference_not_found', field: 'application_type' } };
    expect(await create({ application_type: 'huge' })).toMatchObject(refused);
    const { body } = await create({ application_type: 'm-1gb' });
    expect(body.application_type).toBe('m-1gb');
    expect(await patch(body.id, { application_type: 'huge' })).toMatchObject(refused);
    expect((await patch(body.id, { application_type: null })).body.application_type).toBeNull();
  });

  test('has a name of its own in its application', async () => {
    await create({});
    expect(await create({})).toMatchObject({ status: 409, body: { code: 'name_taken', field: 'name' } });
    expect((await create({}, await newApplication())).status).toBe(201);
    const { body } = await create({ name: 'other' });
    expect(await patch(body.id, { name: 'nightly' })).toMatchObject({ status: 409, body: { code: 'name_taken' } });
  });

  test('gives its name free when it is deleted, and is not found any more', async () => {
    const { id } = (await create({})).body;
    expect((await service.call('DELETE', at(`/${id}`))).status).toBe(204);
    expect((await service.call('GET', at(`/${id}`))).status).toBe(404);
    expect((await trigger(id)).status).toBe(404);
    expect((await create({})).status).toBe(201);
  });

  test('changes by itself alone when its ETag is still that', async () => {
    const made = await create({});
    const etag = made.headers.get('etag') as string;
    const options = { headers: { 'If-Match': etag } };
    expect((await patch(made.body.id, { command: 'date' }, options)).status).toBe(200);
    expect((await patch(made.body.id, { command: 'date' }, options)).status).toBe(412);
  });

  test('keeps its next time where neither time nor zone change', async () => {
    const { id } = (await create({})).body;
    await service.sql(`update cron_schedules set next_run_at = '2030-01-01T00:00:00Z' where id = $1`, [id]);
    expect((await patch(id, { name: 'renamed', cron: '@daily' })).body.next_run_at).toBe('2030-01-01T00:00:00.000Z');
    expect((await patch(id, { cron: '@midnight' })).body.next_run_at).toBe(nextHour(0));
  });
});

describe('limits', () => {
  test('an application has fifty schedules, a project as many as its quota', async () => {
    const more = (id: string, count: number): Promise<unknown> =>
      service.sql(
        `insert into cron_schedules (id, project_id, application_id, name, cron, time_zone, command, timeout_seconds,
            concurrency, missed, enabled, created_at, updated_at)
          select 'sch_' || $1 || n, $2, $1, 'n' || n, '@daily', 'UTC', 'true', 1, 'forbid', 'skip', false, now(), now()
          from generate_series(1, $3) n`,
        [id, service.project, count],
      );
    await more(application, limits.schedulesPerApplication);
    const full = { status: 403, body: { code: 'quota_exceeded', resource: 'schedules' } };
    expect(await create({})).toMatchObject({ ...full, body: { used: 50, limit: 50 } });
    const second = await newApplication();
    expect((await create({}, second)).status).toBe(201);
    await more(second, 9);
    expect(await create({ name: 'one more' }, second)).toMatchObject({ ...full, body: { used: 60, limit: 60 } });
    const usage = await service.call('GET', `/v2/projects/${service.project}/usage`);
    expect(usage.body.quotas).toContainEqual({ resource: 'schedules', used: 60, limit: 60 });
  });
});

describe('a list', () => {
  test('has the schedules of the application, by name, and those that are enabled', async () => {
    for (const name of ['b', 'c', 'a']) await create({ name, enabled: name !== 'c' });
    await create({}, await newApplication());
    const names = async (query: string): Promise<string[]> =>
      (await service.call('GET', at(query))).body.data.map(({ name }: Body) => name);
    expect(await names('')).toEqual(['a', 'c', 'b']);
    expect(await names('?sort=name')).toEqual(['a', 'b', 'c']);
    expect(await names('?enabled=false')).toEqual(['c']);
  });
});

describe('strangers', () => {
  test('a schedule of another application or project is not found', async () => {
    const { id } = (await create({})).body;
    const other = await newApplication();
    const foreign = await service.newProject();
    for (const [path, options] of [
      [at(`/${id}`, other), {}],
      [at(`/${id}`), { project: foreign.id }],
    ] as const) {
      expect((await service.call('GET', path, options)).status).toBe(404);
      expect((await service.call('PATCH', path, { body: { name: 'mine' }, ...options })).status).toBe(404);
      expect((await service.call('DELETE', path, options)).status).toBe(404);
      expect((await service.call('POST', `${path}/trigger`, options)).status).toBe(404);
    }
    expect((await create({}, application, { project: foreign.id })).status).toBe(404);
  });

  test('only `deploy` writes schedules, since they run code', async () => {
    const { id } = (await create({})).body;
    const key = await service.mintKey({ scopes: ['read', 'write'] });
    const refused = { status: 403, body: { code: 'insufficient_scope' } };
    expect((await service.call('GET', at(`/${id}`), { key })).status).toBe(200);
    expect(await create({ name: 'second' }, application, { key })).toMatchObject(refused);
    expect(await patch(id, { command: 'id' }, { key })).toMatchObject(refused);
    expect(await trigger(id, { key })).toMatchObject(refused);
    expect(await service.call('DELETE', at(`/${id}`), { key })).toMatchObject(refused);
  });
});

test('the activity names fields that changed, without the command', async () => {
  const { id } = (await create({ command: 'echo secret-argument' })).body;
  await patch(id, { command: 'echo other-secret' });
  const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${id}`);
  expect(body.data.map(({ action }: Body) => action)).toEqual(['schedule.updated', 'schedule.created']);
  expect(body.data[0]).toMatchObject({ changed_fields: ['command'], resource: { type: 'schedule', name: 'nightly' } });
  expect(JSON.stringify(body)).not.toContain('secret');
});
