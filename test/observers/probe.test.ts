// Probes of other regions, over their own two requests: keys, leases, and reports that are not believed. Real probes in
// processes of their own: engines/probe_storm.test.ts.
import { createProbe, revokeProbe } from '../../models/observers/probe';
import { observersOf, type Observers } from '../support/observers/observers';
import { failed, passed, probesOf, type Probes } from '../support/observers/probes';
import { startService, type TestService } from '../support/service';

let service: TestService;
let observers: Observers;
let probes: Probes;

beforeAll(async () => {
  service = await startService({ settings: { ALLOW_PRIVATE_ADDRESSES: '1', QUOTAS: '{"observers": null}' } });
  observers = observersOf(service);
  probes = probesOf(service);
  for (const name of ['north', 'south', 'south-two']) await probes.add(name);
});

afterAll(() => service.close());

const statusOf = async (id: string): Promise<string> => (await observers.get(id)).status;
const resultsOf = async (id: string): Promise<Record<string, unknown>[]> =>
  (await service.call('GET', `/v2/observers/${id}/results`)).body.data;

describe('the key of a probe', () => {
  test('opens the two requests of probes, and nothing of the API', async () => {
    expect(await probes.ask('north', { limit: 0 })).toEqual({ status: 200, body: { region: 'north', checks: [] } });
    const answer = await service.call('GET', '/v2/observers', { key: probes.tokenOf('north') });
    expect([answer.status, answer.body.code]).toEqual([401, 'token_invalid']);
    const stored = JSON.stringify(await service.sql(`select *, encode(key_hash, 'hex') as hash from probes`));
    expect(stored).not.toContain(probes.tokenOf('north'));
  });

  test('is needed, and no other key will do', async () => {
    const body = { limit: 1, kinds: ['http'], suspended: false };
    expect(await probes.post('checks', body)).toMatchObject({ status: 401, body: { code: 'token_missing' } });
    const wrong = `${probes.tokenOf('north').slice(0, -1)}${probes.tokenOf('north').endsWith('A') ? 'B' : 'A'}`;
    for (const token of [service.key, wrong, 'svc_probe_x'])
      expect(await probes.post('checks', body, token)).toMatchObject({ status: 401, body: { code: 'token_invalid' } });
    expect(await probes.post('results', { results: [] }, service.key)).toMatchObject({ status: 401 });
  });

  test('ends at once when it is revoked', async () => {
    const { database } = service.platform;
    const { probe, token } = await createProbe(database, { region: 'brief', name: 'Brief' });
    expect((await probes.post('checks', { limit: 0, kinds: [], suspended: false }, token)).status).toBe(200);
    expect(await revokeProbe(database, probe.id)).toBe(true);
    expect((await probes.post('checks', { limit: 0, kinds: [], suspended: false }, token)).status).toBe(401);
    const answer = await observers.create({ uptime: { target: 'https://a.example.com/', regions: ['brief'] } });
    expect([answer.status, answer.body.code]).toEqual([422, 'reference_not_found']);
  });
});

describe('a lease', () => {
  test('has what the check needs, and no more', async () => {
    const headers = [{ name: 'X-Key', value: 'of the target' }];
    const id = await probes.made(['north'], { uptime: { regions: ['north'], headers } });
    const leased = await probes.lease('north', id);
    expect(leased).toEqual({
      id: expect.stringMatching(new RegExp(`^${id}\\.\\d+$`)),
      lag_ms: expect.any(Number),
      check: {
        ...{ check: 'http', target: 'https://shop.example.com/', method: 'GET', headers },
        ...{ expected_status_codes: [], expected_body: null, follow_redirects: true, verify_tls: true },
        timeout_seconds: 10,
      },
    });
    // While it lasts nobody else gets the check, and no other region at all.
    expect((await probes.ask('north')).body.checks).toEqual([]);
    expect((await probes.ask('south')).body.checks).toEqual([]);
  });

  test('is taken by one of many that ask at once', async () => {
    const ids = new Set<string>();
    for (let turn = 0; turn < 20; turn += 1) ids.add(await probes.made(['south']));
    const asked = Array.from({ length: 12 }, (_, turn) => probes.ask(turn % 2 ? 'south' : 'south-two', { limit: 4 }));
    const taken = (await Promise.all(asked)).flatMap(({ body }) => body.checks.map(({ id }) => id.split('.')[0]));
    const rest = (await probes.ask('south')).body.checks.map(({ id }) => id.split('.')[0]);
    const all = [...taken, ...rest].filter((id) => ids.has(id as string));
    expect([all.length, new Set(all).size]).toEqual([20, 20]);
  });

  test('ends by itself, and its result is void then', async () => {
    const id = await probes.made(['south']);
    const { id: late } = await probes.lease('south', id);
    const [row] = await service.sql<{ seconds: number }>(
      `select extract(epoch from check_at - now())::float8 as seconds from observer_checks where observer_id = $1`,
      [id],
    );
    expect(row?.seconds).toBeGreaterThan(20);
    expect(row?.seconds).toBeLessThanOrEqual(25);
    await service.sql(`update observer_checks set check_at = now() - make_interval(secs => 1) where observer_id = $1`, [
      id,
    ]);
    expect((await probes.send('south', [{ id: late, age_ms: 1, outcome: failed() }])).body).toMatchObject({
      ...{ counted: 0, expired: 1 },
    });
    const { id: again } = await probes.lease('south-two', id);
    expect(again).not.toBe(late);
    expect((await probes.send('south', [{ id: late, age_ms: 1, outcome: failed() }])).body.expired).toBe(1);
    expect((await probes.send('south-two', [{ id: again, age_ms: 1, outcome: passed() }])).body.counted).toBe(1);
    expect(await statusOf(id)).toBe('ok');
  });

  test('goes only to a probe that can make the check', async () => {
    const id = await probes.made(['north'], { uptime: { regions: ['north'], check: 'ping', target: 'example.com' } });
    await service.sql(`update observer_checks set check_at = now() - make_interval(secs => 1) where observer_id = $1`, [
      id,
    ]);
    const without = (await probes.ask('north', { kinds: ['http', 'tcp'] })).body.checks.map(({ check }) => check.check);
    expect(without).not.toContain('ping');
    const refused = await observers.create({
      uptime: { check: 'ping', target: 'example.com', regions: ['north'] },
    });
    expect([refused.status, refused.body.code]).toEqual([409, 'engine_unavailable']);
    expect((await probes.ask('north')).body.checks.map(({ check }) => check.check)).toContain('ping');
  });
});

describe('a result', () => {
  test('counts once, however often it is sent', async () => {
    const id = await probes.made(['north'], { failure_threshold: 2 });
    const { id: leased } = await probes.lease('north', id);
    const result = { id: leased, age_ms: 1000, outcome: failed() };
    const answers = await Promise.all(Array.from({ length: 8 }, () => probes.send('north', [result, result])));
    const sum = (name: 'counted' | 'repeated' | 'expired'): number =>
      answers.reduce((total, { body }) => total + body[name], 0);
    expect(sum('counted')).toBe(1);
    expect(sum('repeated') + sum('expired')).toBe(15);
    expect([await statusOf(id), (await resultsOf(id)).length]).toEqual(['pending', 1]);
    expect((await resultsOf(id))[0]).toMatchObject({
      ...{ status: 'fail', region: 'north', error: 'It was refused.' },
      ...{ timings: { dns_ms: 1, connect_ms: 2, tls_ms: null, first_byte_ms: 9 } },
    });
  });

  test('is only taken from the probe that holds the lease', async () => {
    const id = await probes.made(['south']);
    const { id: leased } = await probes.lease('south', id);
    const [observer = '', fence] = leased.split('.');
    const foreign = [leased, `${observer}.${Number(fence) + 1}`, `${observer}.0`];
    for (const name of ['north', 'south-two']) {
      const { body } = await probes.send(
        name,
        foreign.map((one) => ({ id: one, age_ms: 1, outcome: failed() })),
      );
      expect(body.counted).toBe(0);
    }
    const { body } = await probes.send('south', [{ id: foreign[1], age_ms: 1, outcome: failed() }]);
    expect(body).toMatchObject({ counted: 0, rejected: [{ index: 0, detail: expect.stringContaining('not leased') }] });
    expect(await resultsOf(id)).toEqual([]);
    expect((await probes.send('south', [{ id: leased, age_ms: 1, outcome: passed() }])).body.counted).toBe(1);
  });

  test('is as old as the probe says, but not older than the lease', async () => {
    const id = await probes.made(['north']);
    const { id: leased } = await probes.lease('north', id);
    await probes.send('north', [{ id: leased, age_ms: 500_000, outcome: passed() }]);
    const [result] = await resultsOf(id);
    expect(Date.now() - Date.parse(result?.checked_at as string)).toBeLessThan(60_000);
  });

  test('of a target that was changed meanwhile is void', async () => {
    const id = await probes.made(['north']);
    const { id: leased } = await probes.lease('north', id);
    await observers.patch(id, { uptime: { target: 'https://other.example.com/' } });
    const { body } = await probes.send('north', [{ id: leased, age_ms: 1, outcome: failed() }]);
    expect([body.counted, await statusOf(id)]).toEqual([0, 'pending']);
  });

  test('without an outcome has the check made again soon', async () => {
    const id = await probes.made(['north']);
    const { id: leased } = await probes.lease('north', id);
    expect((await probes.send('north', [{ id: leased, age_ms: 0, outcome: null }])).body.counted).toBe(1);
    const [row] = await service.sql<{ seconds: number }>(
      `select extract(epoch from check_at - now())::float8 as seconds from observer_checks where observer_id = $1`,
      [id],
    );
    expect(row?.seconds).toBeLessThanOrEqual(5);
    expect((await probes.send('north', [{ id: leased, age_ms: 0, outcome: failed() }])).body.counted).toBe(0);
    expect([await statusOf(id), await resultsOf(id)]).toEqual(['pending', []]);
  });

  test.each([
    ['no object', 7],
    ['no lease', { id: 'obs_1.1', age_ms: 1, outcome: null }],
    ['SQL for a lease', { id: "obs_01h455vb4pex5vsknk084sn02q.1' or 1=1", age_ms: 1, outcome: null }],
    ['an age before the check', { age_ms: -1 }],
    ['no age', { age_ms: null }],
    ['an unknown status', { outcome: passed({ status: 'great' }) }],
    ['a pass with an error', { outcome: passed({ error: 'It failed.' }) }],
    ['a failure without one', { outcome: passed({ status: 'fail' }) }],
    ['an error that is a book', { outcome: failed({ error: 'x'.repeat(501) }) }],
    ['an error with a line break', { outcome: failed({ error: 'a\nb' }) }],
    ['an error that is an object', { outcome: failed({ error: { toString: 'x' } }) }],
    ['a negative time', { outcome: passed({ response_time_ms: -5 }) }],
    ['an endless time', { outcome: passed({ response_time_ms: 1e300 }) }],
    ['a status code beyond HTTP', { outcome: passed({ status_code: 70_000 }) }],
    ['half a status code', { outcome: passed({ status_code: 200.5 }) }],
    ['no timings', { outcome: passed({ timings: null }) }],
    ['odd timings', { outcome: passed({ timings: { dns_ms: 'fast' } }) }],
    ['a certificate of no time', { outcome: passed({ certificate_expires_at: 'tomorrow' }) }],
  ])('of another form is rejected, and those beside it count: %s', async (_, wrong) => {
    const ids = [await probes.made(['north']), await probes.made(['north'])];
    await probes.makeDue('north', ids);
    const [one, two] = (await probes.ask('north')).body.checks;
    const sent = typeof wrong === 'object' ? { id: one?.id, age_ms: 1, outcome: passed(), ...wrong } : wrong;
    const { status, body } = await probes.send('north', [sent, { id: two?.id, age_ms: 1, outcome: passed() }]);
    expect([status, body.counted, body.rejected.map(({ index }) => index)]).toEqual([200, 1, [0]]);
  });

  test.each([
    ['no JSON', '{', 'malformed_json', 400],
    ['no list', { results: 1 }, 'malformed_request', 400],
    ['an empty list', { results: [] }, 'malformed_request', 400],
    ['a list without end', { results: Array(251).fill(1) }, 'malformed_request', 400],
    ['too many bytes', `{"results": ["${'x'.repeat(1_100_000)}"]}`, 'payload_too_large', 413],
  ])('comes in a report of the right form: %s', async (_, body, code, status) => {
    expect(await probes.post('results', body, probes.tokenOf('north'))).toMatchObject({ status, body: { code } });
  });

  test.each([
    { limit: -1 },
    { limit: 251 },
    { limit: '5' },
    { kinds: ['gopher'] },
    { kinds: 'http' },
    { suspended: 1 },
  ])('is asked for in the right form: %j', async (wrong) => {
    expect(await probes.ask('north', wrong)).toMatchObject({ status: 400, body: { code: 'malformed_request' } });
  });
});
