// Checks that are asked for: what they answer, what they leave behind (docs/contract/resources.md §15.1).
import { addMetricPoints } from '../../models/applications/metric_point';
import { applyFindings } from '../../models/observers/observer/results';
import { startTarget, type Target } from '../support/deployments/breakable_target';
import { observersOf, type Observers } from '../support/observers/observers';
import { startService, type TestService } from '../support/service';

let service: TestService;
let observers: Observers;
let target: Target;

beforeAll(async () => {
  service = await startService({ settings: { ALLOW_PRIVATE_ADDRESSES: '1' } });
  observers = observersOf(service);
  target = await startTarget();
});

afterAll(async () => {
  await service.close();
  await target.close();
});

const at = (place: string): string => `http://127.0.0.1:${target.port}${place}`;
const results = async (id: string, query = ''): Promise<Record<string, unknown>[]> =>
  (await service.call('GET', `/v2/observers/${id}/results${query}`)).body.data;

test('a check answers its result, which counts', async () => {
  const { id } = await observers.made(at('/ok'));
  const { status, body } = await observers.check(id);
  expect(status).toBe(200);
  expect(body).toEqual({
    ...{ id: expect.stringMatching(/^chk_/), observer_id: id, checked_at: expect.any(String), status: 'pass' },
    ...{ region: 'local', response_time_ms: expect.any(Number), status_code: 200, value: null, error: null },
    ...{ incident_id: null, certificate_expires_at: null },
    timings: {
      dns_ms: expect.any(Number),
      connect_ms: expect.any(Number),
      tls_ms: null,
      first_byte_ms: expect.any(Number),
    },
  });
  expect(await observers.get(id)).toMatchObject({ status: 'ok', last_result: body, uptime_percent_30d: 100 });
  expect(await results(id)).toEqual([{ ...body, response_time_ms: expect.closeTo(body.response_time_ms, 1) }]);
});

test('results are filtered by status, region and time', async () => {
  const { id } = await observers.made(at('/switch'));
  target.status = 500;
  const failed = (await observers.check(id)).body;
  target.status = 200;
  const passed = (await observers.check(id)).body;
  const ids = async (query: string): Promise<unknown[]> => (await results(id, query)).map((row) => row.id);
  expect(await ids('')).toEqual([passed.id, failed.id]);
  expect(await ids('?status=fail')).toEqual([failed.id]);
  expect(await ids('?region=mars')).toEqual([]);
  expect(await ids(`?since=${passed.checked_at}`)).toEqual([passed.id]);
  expect(await ids(`?until=${passed.checked_at}`)).toEqual([failed.id]);
  expect((await observers.get(id)).uptime_percent_30d).toBe(50);
});

test('secret headers reach the target, and nobody else', async () => {
  const headers = [{ name: 'X-Api-Key', value: 'hush-hush' }];
  const { id } = await observers.made(at('/ok'), { uptime: { headers } });
  const answer = await observers.check(id);
  expect(target.heard.at(-1)?.headers).toMatchObject({ 'x-api-key': 'hush-hush' });
  expect(answer.text).not.toContain('hush-hush');
});

describe('metrics', () => {
  let application: string;

  beforeAll(async () => {
    application = (await service.call('POST', '/v2/applications', { body: { name: 'measured' } })).body.id;
  });

  /** A point of a minute some minutes ago. */
  const point = (metric: string, minutesAgo: number, samples: number, total: number): Promise<void> =>
    addMetricPoints(service.platform.database, [
      {
        ...{ at: new Date(Date.now() - minutesAgo * 60_000), project_id: service.project, resource_id: application },
        ...{ part_id: 'prc_web', metric, samples, total },
      },
    ]);
  const watch = async (metric: string, operator: string, threshold: number): Promise<string> =>
    (
      await observers.create({
        ...{ type: 'metric', uptime: undefined },
        metric: { resource_type: 'application', resource_id: application, metric, operator, threshold },
      })
    ).body.id;

  test('a mean over the window is compared with the threshold', async () => {
    await point('cpu_percent', 2, 4, 200);
    await point('cpu_percent', 3, 4, 360);
    const [above, below] = [await watch('cpu_percent', 'gt', 69), await watch('cpu_percent', 'gt', 70)];
    expect((await observers.check(above)).body).toMatchObject({
      ...{ status: 'fail', value: 70, error: 'cpu_percent is 70, which is > 69.', response_time_ms: null },
    });
    expect((await observers.check(below)).body).toMatchObject({ status: 'pass', value: 70, error: null });
  });

  test('what is counted is summed up, and nothing counted while something ran is zero', async () => {
    const id = await watch('requests', 'lt', 1);
    expect(await observers.check(id)).toMatchObject({ status: 502, body: { code: 'provider_error' } });
    await point('instances', 2, 1, 1);
    expect((await observers.check(id)).body).toMatchObject({ status: 'fail', value: 0 });
    await point('requests', 2, 0, 7);
    expect((await observers.check(id)).body).toMatchObject({ status: 'pass', value: 7 });
  });

  test('a metric of a database that is silent for three windows has no data, until it is heard of', async () => {
    const body = { name: 'watched', engine: 'postgresql', database_package: 'dev-1vcpu-256mb' };
    const database = await service.call('POST', '/v2/databases', { body });
    expect(database.status).toBe(201);
    const metric = { resource_type: 'database', resource_id: database.body.id, metric: 'connections' };
    const { id } = (
      await observers.create({
        ...{ type: 'metric', uptime: undefined },
        metric: { ...metric, operator: 'gt', threshold: 10 },
      })
    ).body;
    // What the loop finds of a metric without points.
    const silence = async (): Promise<unknown> => {
      const finding = { observer_id: id, region: 'local', fence: null, checked_at: new Date(), outcome: null };
      await service.platform.database.transaction((session) => applyFindings(session, [finding]));
      return (await observers.get(id)).status;
    };
    expect(await silence()).toBe('pending');
    await service.sql(`update observers set data_at = now() - interval '1 hour' where id = $1`, [id]);
    expect(await silence()).toBe('no_data');
    const at = new Date(Date.now() - 2 * 60_000);
    const points = { at, project_id: service.project, resource_id: metric.resource_id, part_id: 'primary' };
    await addMetricPoints(service.platform.database, [{ ...points, metric: 'connections', samples: 4, total: 12 }]);
    expect((await observers.check(id)).body).toMatchObject({ status: 'pass', value: 3 });
    expect((await observers.get(id)).status).toBe('ok');
  });
});
