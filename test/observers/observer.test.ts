// Observers as rows: fields, rules, references, pausing (docs/contract/resources.md §15.1). What checks find:
// check_result.test.ts.
import { mistakesOf, observersOf, type Observers } from '../support/observers/observers';
import { startService, type TestService } from '../support/service';

let service: TestService;
let observers: Observers;
let application: string;

beforeAll(async () => {
  service = await startService();
  observers = observersOf(service);
  application = (await service.call('POST', '/v2/applications', { body: { name: 'shop' } })).body.id;
});

afterAll(() => service.close());

const metric = (changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  ...{ type: 'metric', uptime: undefined },
  metric: {
    ...{ resource_type: 'application', resource_id: application, metric: 'cpu_percent' },
    ...{ operator: 'gt', threshold: 90, ...changes },
  },
});

test('a new observer answers everything that is promised', async () => {
  const made = await observers.create({ name: 'Front' });
  expect([made.status, made.headers.get('location')]).toEqual([201, `${service.url}/v2/observers/${made.body.id}`]);
  expect(made.body).toEqual({
    ...{
      id: expect.stringMatching(/^obs_/),
      project_id: service.project,
      name: 'Front',
      type: 'uptime',
      enabled: true,
    },
    uptime: {
      ...{ check: 'http', target: 'https://shop.example.com/', method: 'GET', headers: [] },
      ...{ expected_status_codes: [], expected_body: null, follow_redirects: true, verify_tls: true },
      ...{ certificate_expiry_days: 7, timeout_seconds: 10, regions: [] },
    },
    ...{ metric: null, interval_seconds: 60, failure_threshold: 2, recovery_threshold: 1 },
    ...{ notifier_ids: [], reminder_minutes: null, status: 'pending', last_result: null },
    ...{ uptime_percent_30d: null, open_incident_id: null },
    ...{ created_at: expect.any(String), updated_at: made.body.created_at },
  });
  expect(await observers.get(made.body.id)).toEqual(made.body);
});

test('a metric observer names its resource, and is found by it', async () => {
  const { status, body } = await observers.create(metric());
  expect([status, body.uptime, body.uptime_percent_30d]).toEqual([201, null, null]);
  expect(body.metric).toEqual({
    ...{ resource_type: 'application', resource_id: application, metric: 'cpu_percent' },
    ...{ operator: 'gt', threshold: 90, window_seconds: 300 },
  });
  const found = await service.call('GET', `/v2/observers?resource_id=${application}&type=metric&status=pending`);
  expect(found.body.data.map(({ id }: { id: string }) => id)).toContain(body.id);
});

describe('what is refused', () => {
  test('a password in a target, with the place where it belongs', async () => {
    const { status, body } = await observers.create({ uptime: { target: 'https://eve:secret@shop.example.com/' } });
    expect([status, body.errors]).toEqual([
      422,
      [expect.objectContaining({ field: 'uptime.target', detail: expect.stringMatching(/header Authorization/) })],
    ]);
    expect(JSON.stringify(body)).not.toContain('secret@');
  });

  const uptime = (changes: Record<string, unknown>): Record<string, unknown> => ({
    uptime: { target: 'https://shop.example.com/', ...changes },
  });
  const cases: [string, Record<string, unknown>, [string, string][]][] = [
    ['no object', { uptime: undefined }, [['uptime', 'required']]],
    ['the object of the other type', { type: 'metric' }, [['uptime', 'depends_on']]],
    ['a target that is no URL', uptime({ target: 'shop.example.com' }), [['uptime.target', 'invalid_format']]],
    ['a private address', uptime({ target: 'http://10.0.0.1/' }), [['uptime.target', 'invalid_format']]],
    ['a private address in disguise', uptime({ target: 'http://0x7f.1/' }), [['uptime.target', 'invalid_format']]],
    ['localhost', uptime({ target: 'http://localhost:9090/' }), [['uptime.target', 'invalid_format']]],
    ['IPv6 loopback', uptime({ target: 'http://[::1]/' }), [['uptime.target', 'invalid_format']]],
    ['tcp without a port', uptime({ check: 'tcp', target: 'example.com' }), [['uptime.target', 'invalid_format']]],
    ['tcp to metadata', uptime({ check: 'tcp', target: '169.254.169.254:80' }), [['uptime.target', 'invalid_format']]],
    ['ping with an option', uptime({ check: 'ping', target: '-f' }), [['uptime.target', 'invalid_format']]],
    ['an interval of its own', { interval_seconds: 45 }, [['interval_seconds', 'not_in_enum']]],
    [
      'a timeout as long as the interval',
      { interval_seconds: 30, ...uptime({ timeout_seconds: 30 }) },
      [['uptime.timeout_seconds', 'too_large']],
    ],
    [
      'a text in the answer to HEAD',
      uptime({ method: 'HEAD', expected_body: 'ok' }),
      [['uptime.expected_body', 'depends_on']],
    ],
    [
      'a value that no header carries',
      uptime({ headers: [{ name: 'X-A', value: 'é' }] }),
      [['uptime.headers.0.value', 'invalid_format']],
    ],
    [
      'a header that frames the request',
      uptime({ headers: [{ name: 'Content-Length', value: '5' }] }),
      [['uptime.headers.0.name', 'invalid_format']],
    ],
    ['a status code', uptime({ expected_status_codes: [99] }), [['uptime.expected_status_codes.0', 'too_small']]],
    [
      'thresholds',
      { failure_threshold: 0, recovery_threshold: 11 },
      [
        ['failure_threshold', 'too_small'],
        ['recovery_threshold', 'too_large'],
      ],
    ],
    ['reminders too often', { reminder_minutes: 4 }, [['reminder_minutes', 'too_small']]],
  ];

  test.each(cases)('%s', async (_, body, mistakes) => {
    const answer = await observers.create(body);
    const found = mistakesOf(answer);
    for (const [field, code] of mistakes)
      expect(found.map(([name, word]) => [name.replace(/\.0$/, ''), word])).toContainEqual([
        field.replace(/codes\.0$/, 'codes'),
        code,
      ]);
  });

  test('an unknown metric, resource, notifier or region', async () => {
    expect(mistakesOf(await observers.create(metric({ metric: 'happiness' })))).toEqual([
      ['metric.metric', 'not_in_enum'],
    ]);
    const unknown = [
      metric({ resource_id: 'app_01h455vb4pex5vsknk084sn02q' }),
      { notifier_ids: ['ntf_01h455vb4pex5vsknk084sn02q'] },
      uptime({ regions: ['mars'] }),
    ];
    for (const body of unknown) {
      const answer = await observers.create(body);
      expect([answer.status, answer.body.code]).toEqual([422, 'reference_not_found']);
    }
  });

  test('a ping where the host has no ping', async () => {
    if ((await service.platform.facts()).programs.ping) return;
    const answer = await observers.create(uptime({ check: 'ping', target: 'example.com' }));
    expect([answer.status, answer.body.code]).toEqual([409, 'engine_unavailable']);
    expect(answer.body.detail).toContain('iputils-ping');
  });
});

test('values of headers are sealed and masked, and a mask that comes back changes nothing', async () => {
  const headers = [{ name: 'Authorization', value: 'Bearer very-secret' }];
  const { id, uptime } = await observers.made('https://shop.example.com/', { uptime: { headers } });
  expect(uptime.headers).toEqual([{ name: 'Authorization', value: '***' }]);
  const [stored] = await service.sql('select uptime::text, sealed_headers from observers where id = $1', [id]);
  expect(JSON.stringify(stored)).not.toContain('very-secret');
  const patched = await observers.patch(id, { uptime: { headers: [...uptime.headers, { name: 'X-A', value: 'b' }] } });
  expect([patched.status, patched.body.uptime.headers.length]).toEqual([200, 2]);
  const refused = await observers.patch(id, { uptime: { headers: [{ name: 'X-New', value: '***' }] } });
  expect(mistakesOf(refused)).toEqual([['uptime.headers.0.value', 'invalid_format']]);
  const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${id}`);
  expect(JSON.stringify(body)).not.toContain('very-secret');
});

test('an update merges into the object of its type, and no other', async () => {
  const { id } = await observers.made('https://shop.example.com/', { uptime: { expected_body: 'shop' } });
  const { body } = await observers.patch(id, { uptime: { timeout_seconds: 5 }, interval_seconds: 30 });
  expect(body).toMatchObject({ interval_seconds: 30, uptime: { timeout_seconds: 5, expected_body: 'shop' } });
  expect((await observers.patch(id, { uptime: { expected_body: null } })).body.uptime.expected_body).toBeNull();
  expect(mistakesOf(await observers.patch(id, { metric: { threshold: 5 } }))).toEqual([['metric', 'depends_on']]);
  expect(mistakesOf(await observers.patch(id, { type: 'metric' }))).toEqual([['type', 'immutable']]);
  const long = await observers.patch(id, { uptime: { timeout_seconds: 30 } });
  expect(mistakesOf(long)).toEqual([['uptime.timeout_seconds', 'too_large']]);
});

test('pausing takes an observer off its schedule, resuming puts it back', async () => {
  const { id } = await observers.made('https://shop.example.com/');
  const scheduled = (): Promise<unknown[]> =>
    service.sql('select region from observer_checks where observer_id = $1', [id]);
  expect(await scheduled()).toEqual([{ region: 'local' }]);
  expect((await observers.patch(id, { enabled: false })).body).toMatchObject({ enabled: false, status: 'paused' });
  expect(await scheduled()).toEqual([]);
  const checked = await observers.check(id);
  expect([checked.status, checked.body.code, checked.body.resource_status]).toEqual([409, 'invalid_state', 'paused']);
  expect((await observers.patch(id, { enabled: true })).body).toMatchObject({ enabled: true, status: 'pending' });
  expect(await scheduled()).toEqual([{ region: 'local' }]);
});

test('an observer may begin paused', async () => {
  expect((await observers.create({ enabled: false })).body).toMatchObject({ enabled: false, status: 'paused' });
});

test('deleting the application deletes what watches it', async () => {
  const { body: other } = await service.call('POST', '/v2/applications', { body: { name: 'short-lived' } });
  const { body } = await observers.create(metric({ resource_id: other.id }));
  expect((await service.call('DELETE', `/v2/applications/${other.id}`)).status).toBe(204);
  expect((await service.call('GET', `/v2/observers/${body.id}`)).status).toBe(404);
});

test('a deleted notifier leaves the lists that name it', async () => {
  const { id: gone } = await observers.notifier();
  const { id: kept } = await observers.notifier();
  const { id } = await observers.made('https://shop.example.com/', { notifier_ids: [gone, kept] });
  expect((await service.call('GET', `/v2/observers?notifier_id=${gone}`)).body.data).toHaveLength(1);
  expect((await service.call('DELETE', `/v2/notifiers/${gone}`)).status).toBe(204);
  expect((await observers.get(id)).notifier_ids).toEqual([kept]);
});
