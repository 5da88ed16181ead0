// Every engine of CDN zones is a cache by the same rules.
import http from 'node:http';
import { gunzipSync } from 'node:zlib';
import { startCdnBench, type CdnBench, type Seen } from '../support/cdn/cdn_bench';
import { waitFor } from '../support/wait_for';
import type { CdnEngine } from '../../engines/cdn/edge/edge';
import type { Rule, Step } from './cdn_rule';
import { RULES } from './cdn_rules';
import { describeCdnSafety } from './cdn_safety';

export function describeCdnCache(name: string, open: () => Promise<CdnEngine> | CdnEngine): void {
  describe(`the cache of ${name}`, () => {
    let bench: CdnBench;
    beforeAll(async () => {
      bench = await startCdnBench(open);
    }, 60_000);
    afterAll(() => bench?.close());

    const named = RULES.map((rule, index) => ({ ...rule, index, title: `${rule.section}: ${rule.rule}` }));
    test.each(named)('$title', (rule) => checkRule(bench, rule));

    test('a purge takes out what it means, by address, prefix, tag and all', () => checkPurges(bench));
    test('what is on its way while a purge comes is not kept', () => checkPurgeOfFetch(bench));
    test('many visitors of one new object cost one request, and all get the whole', () => checkWaiters(bench));
    test('visitors who wait for a new object get its bytes as they come', () => checkStreaming(bench));
    test('a write purges what its response names, of this site', () => checkNamedByWrite(bench));
    test('a validation in the name of one Origin is not for others', () => checkRenewedForOrigin(bench));
    test('a purge takes out what is there for each Origin', () => checkPurgeOfOrigins(bench));
    test('many made-up Origins do not push out what others get', () => checkManyOrigins(bench));
    test('compressed for visitors who can read it, and the same text for others', () => checkCompression(bench));
    test('hits, requests to the origin and bytes are counted', () => checkCounters(bench));
    describeCdnSafety(() => bench);
  });
}

const MINUTE = { headers: { 'cache-control': 'max-age=60' } };

async function checkPurges(bench: CdnBench): Promise<void> {
  const host = await bench.zone('cdn_purges');
  const other = await bench.zone('cdn_bystander');
  const tags = { '/purge/a/1': 'red', '/purge/a/2': 're blue', '/purge/b/1': 'red green', '/purge/b/1?q': '' };
  const targets = Object.keys(tags);
  for (const [target, tag] of Object.entries(tags))
    if (tag) bench.origin(target, [{ headers: { ...MINUTE.headers, 'surrogate-key': tag } }]);
  const hits = async (at = host): Promise<string> => {
    let found = '';
    for (const target of targets)
      found += (await bench.visit(at, target)).headers['cache-status'] === 'edge; hit' ? 'h' : '-';
    return found;
  };
  await Promise.all([hits(), hits(other)]);
  expect(await hits()).toBe('hhhh');
  const steps: ['urls' | 'prefixes' | 'tags' | 'all', string[], string][] = [
    ['urls', ['/purge/a/1'], '-hhh'],
    ['urls', ['/purge/b/1?q'], 'hhh-'],
    ['urls', ['/purge/b/1'], 'hh--'],
    ['urls', ['/purge/b', '/purge/a'], 'hhhh'],
    ['prefixes', ['/purge/a/'], '--hh'],
    ['tags', ['red', 'none'], '-h--'],
    ['prefixes', ['/purge/[ab]', '/purge/a/1.'], 'hhhh'],
    ['all', [], '----'],
  ];
  for (const [type, values, left] of steps) {
    await bench.purge('cdn_purges', type, values);
    expect([type, values, await hits()]).toEqual([type, values, left]);
  }
  expect(await hits(other)).toBe('hhhh');
}

async function checkPurgeOfFetch(bench: CdnBench): Promise<void> {
  const host = await bench.zone('cdn_on_its_way');
  bench.origin('/slow', [{ ...MINUTE, delayMs: 500 }, MINUTE]);
  const first = bench.visit(host, '/slow');
  await waitFor('the request', async () => bench.asked('/slow').length > 0);
  await bench.purge('cdn_on_its_way', 'tags', ['whatever']);
  expect((await first).body).toBe('answer 1');
  expect((await bench.visit(host, '/slow')).body).toBe('answer 2');
}

const WAITERS = 200;

async function checkWaiters(bench: CdnBench): Promise<void> {
  const host = await bench.zone('cdn_waiters');
  const body = 'x'.repeat(300_000);
  bench.origin('/many', [{ ...MINUTE, body, delayMs: 500 }]);
  const seen = await Promise.all(Array.from({ length: WAITERS }, () => bench.visit(host, '/many')));
  expect(seen.every((one) => one.status === 200 && one.body === body)).toBe(true);
  expect(bench.asked('/many')).toHaveLength(1);
}

async function checkStreaming(bench: CdnBench): Promise<void> {
  const host = await bench.zone('cdn_streamed');
  const body = 'x'.repeat(400_000);
  // A compressor would hold it back until there is enough.
  const headers = { ...MINUTE.headers, 'content-type': 'application/octet-stream' };
  bench.origin('/streamed', [{ headers, body, holds: true }]);
  const bodies = [beginReading(bench, host, '/streamed'), beginReading(bench, host, '/streamed')];
  await waitFor('a part for each', async () => bodies.every(({ length }) => length() > 50_000));
  expect(bodies.map(({ length }) => length() < body.length)).toEqual([true, true]);
  bench.release();
  for (const { ended, length } of bodies) {
    await ended;
    expect(length()).toBe(body.length);
  }
  expect(bench.asked('/streamed')).toHaveLength(1);
}

function beginReading({ port }: CdnBench, host: string, path: string): { length(): number; ended: Promise<void> } {
  let length = 0;
  const ended = new Promise<void>((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port, path, headers: { host }, agent: false }, (response) => {
      response.on('data', (chunk: Buffer) => (length += chunk.length));
      response.on('error', reject).on('end', () => resolve());
    });
    request.on('error', reject);
  });
  return { length: () => length, ended };
}

async function checkNamedByWrite(bench: CdnBench): Promise<void> {
  const host = await bench.zone('cdn_named');
  const paths = ['/named/location', '/named/content-location', '/named/elsewhere', '/named/other'];
  for (const path of paths) bench.origin(path, [MINUTE]);
  const visitAll = async (): Promise<unknown[]> => {
    const found = [];
    for (const path of paths) found.push((await bench.visit(host, path)).body);
    return found;
  };
  const headers = {
    location: '/named/x/../location?new',
    'content-location': 'http://origin.example.com/named/content-location',
  };
  bench.origin('/named/write', [
    { status: 201, headers },
    { headers: { location: 'http://other.example.com/named/elsewhere' } },
  ]);
  await visitAll();
  for (let turn = 0; turn < 2; turn += 1) await bench.visit(host, '/named/write', { method: 'POST' });
  expect(await visitAll()).toEqual(['answer 2', 'answer 2', 'answer 1', 'answer 1']);
}

async function checkRenewedForOrigin(bench: CdnBench): Promise<void> {
  const host = await bench.zone('cdn_renewed');
  const say = (origin: string, age: number): void =>
    bench.origin('/font', [
      {
        headers: { 'cache-control': `max-age=${age}`, etag: '"f1"', 'access-control-allow-origin': origin },
        validates: true,
      },
    ]);
  const allowedFor = async (origin: string): Promise<unknown> =>
    (await bench.visit(host, '/font', { headers: { origin } })).headers['access-control-allow-origin'];
  const [one, two] = ['https://one.example.com', 'https://two.example.com'];
  say('*', 0);
  expect(await allowedFor(one)).toBe('*');
  say(one, 60);
  expect(await allowedFor(one)).toBe(one);
  say(two, 60);
  expect([await allowedFor(two), await allowedFor(one), await allowedFor(two)]).toEqual([two, one, two]);
}

async function checkPurgeOfOrigins(bench: CdnBench): Promise<void> {
  const host = await bench.zone('cdn_purged_origins');
  bench.origin('/purged-font', [MINUTE]);
  const visits: Record<string, string>[] = [{}, { origin: 'https://one.example.com' }, { origin: 'null' }];
  const bodies = async (): Promise<string[]> => {
    const found = [];
    for (const headers of visits) found.push((await bench.visit(host, '/purged-font', { headers })).body);
    return found;
  };
  const before = ['answer 1', 'answer 2', 'answer 3'];
  expect([await bodies(), await bodies()]).toEqual([before, before]);
  await bench.purge('cdn_purged_origins', 'urls', ['/purged-font']);
  expect(await bodies()).toEqual(['answer 4', 'answer 5', 'answer 6']);
}

async function checkManyOrigins(bench: CdnBench): Promise<void> {
  const host = await bench.zone('cdn_many_origins');
  bench.origin('/logo', [MINUTE]);
  expect((await bench.visit(host, '/logo')).body).toBe('answer 1');
  for (let index = 0; index < 60; index += 1)
    await bench.visit(host, '/logo', { headers: { origin: `https://${index}.example.com` } });
  expect((await bench.visit(host, '/logo')).body).toBe('answer 1');
}

async function checkCompression(bench: CdnBench): Promise<void> {
  const host = await bench.zone('cdn_compressed');
  const body = 'a text that repeats itself. '.repeat(200);
  bench.origin('/text', [{ headers: { ...MINUTE.headers, etag: '"t1"' }, body }]);
  for (let turn = 0; turn < 2; turn += 1) {
    const packed = await bench.visit(host, '/text', { headers: { 'accept-encoding': 'gzip' } });
    expect(packed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding', etag: 'W/"t1"' });
    expect(gunzipSync(Buffer.from(packed.body, 'latin1')).toString()).toBe(body);
    const plain = await bench.visit(host, '/text', { headers: { 'accept-encoding': 'gzip;q=0' } });
    expect([plain.headers['content-encoding'], plain.body]).toEqual([undefined, body]);
  }
  expect(bench.asked('/text')).toHaveLength(1);
  expect(bench.asked('/text')[0]?.headers['accept-encoding']).toBe('identity');
}

async function checkCounters(bench: CdnBench): Promise<void> {
  bench.engine.driver.takeTraffic();
  const host = await bench.zone('cdn_counted');
  bench.origin('/counted', [{ ...MINUTE, body: 'x'.repeat(10_000) }]);
  for (let turn = 0; turn < 4; turn += 1) await bench.visit(host, '/counted');
  const [counted] = await waitFor('the counters', async () => {
    const found = bench.engine.driver.takeTraffic().filter(({ zone_id }) => zone_id === 'cdn_counted');
    return found.length ? found : null;
  });
  expect(counted).toMatchObject({ requests: 4, hits: 3, origin_requests: 1, responses: { '2xx': 4 } });
  expect(counted?.bytes).toBeGreaterThan(40_000);
}

async function checkRule(bench: CdnBench, { index, cache, origin, steps }: Rule & { index: number }): Promise<void> {
  const host = await bench.zone(`cdn_rule${index}`, cache);
  const path = `/rule/${index}`;
  bench.origin(path, origin);
  for (const step of steps) {
    const { method, headers, scheme, query = '' } = step;
    const look = async (): Promise<object> => {
      const options = { ...(method && { method }), ...(headers && { headers }), ...(scheme && { scheme }) };
      const seen = await bench.visit(host, `${path}${query}`, options);
      // What is fetched behind a stale answer comes a moment later.
      await waitFor('the origin', async () => bench.asked(path).length >= step.asked, 5_000).catch(() => null);
      return pictureOf(seen, step, bench.asked(path).length);
    };
    const expected = expectedOf(step);
    let picture = await look();
    for (let turn = 0; step.comes && turn < TURNS && !matches(picture, expected); turn += 1) picture = await look();
    expect(picture).toEqual(expected);
  }
}

const TURNS = 150;

function matches(picture: object, expected: object): boolean {
  try {
    expect(picture).toEqual(expected);
    return true;
  } catch {
    return false;
  }
}

function pictureOf({ status, headers, body }: Seen, step: Step, asked: number): object {
  const fields = Object.keys(step.fields ?? {}).map((name) => [name, headers[name] ?? null]);
  return {
    asked,
    ...(step.status !== undefined && { status }),
    ...(step.body !== undefined && { body }),
    ...(step.fields && { fields: Object.fromEntries(fields) }),
  };
}

function expectedOf({ asked, status, body, fields }: Step): object {
  const shown = Object.entries(fields ?? {}).map(([name, part]) => [
    name,
    part === null ? null : expect.stringContaining(part),
  ]);
  return {
    asked,
    ...(status !== undefined && { status }),
    ...(body !== undefined && { body: typeof body === 'number' ? `answer ${body}` : body }),
    ...(fields && { fields: Object.fromEntries(shown) }),
  };
}
