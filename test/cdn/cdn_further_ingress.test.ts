/** @tier heavy @quarter 3 @covers server/start_ingress.ts server/agents/cdn/ */
// CDN zones at ingresses of processes of their own, `npm run ingress`: each serves all of them from a cache of its own.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { activeZone, dns, ingressPort, origin, purge, service, setUpCdn, type Body } from '../support/cdn/cdn_cases';
import type { Visited } from '../support/cdn/cdn_origin';
import { freePort } from '../support/processes/free_port';
import { endPrograms, startProgram, type Program } from '../support/processes/program';
import { waitFor } from '../support/wait_for';

jest.setTimeout(90_000);
setUpCdn();

interface Further {
  program: Program;
  port: number;
}

const ORIGIN_ONLY = 'edge; fwd=bypass';
const MISS = 'edge; fwd=uri-miss; stored';
const HIT = 'edge; hit';

let one: Further;
let other: Further;

beforeAll(async () => {
  [one, other] = await Promise.all([startFurther(), startFurther()]);
}, 90_000);
afterAll(endPrograms);

async function startFurther(port?: number): Promise<Further> {
  const { databaseUrl, config } = service.platform;
  const own = port ?? (await freePort());
  const program = startProgram(
    {
      ...{ DATABASE_URL: databaseUrl, PLATFORM_DATA_DIR: config.dataDir, WORKLOADS: 'kubernetes' },
      ...{ ALLOW_PRIVATE_ADDRESSES: '1', DNS_RESOLVERS: dns.address, S3_PORT: String(config.s3Port) },
      ...{ REGISTRY_PORT: '5000', INGRESS_PORT: String(own) },
    },
    { entry: 'server/ingress.ts' },
  );
  await program.ready();
  return { program, port: own };
}

const allPorts = (): number[] => [ingressPort(), one.port, other.port];

const at = (port: number, host: unknown, target: string, method = 'GET'): Promise<Visited> =>
  origin.visit(port, String(host), target, {}, method);

const stateAt = async (port: number, { hostname }: Body, target: string): Promise<unknown> =>
  (await at(port, hostname, target)).headers['cache-status'];

const statesOf = (zone: Body, target: string): Promise<unknown[]> =>
  Promise.all(allPorts().map((port) => stateAt(port, zone, target)));

/** A zone that all ingresses serve; `activeZone` waits for that of the jobs alone. */
async function servedZone(more: object = {}): Promise<Body> {
  const zone = await activeZone(more);
  for (const port of allPorts())
    await waitFor('the zone', async () => (await at(port, zone.hostname, '/none', 'OPTIONS')).status === 200);
  return zone;
}

async function domainOf(zone: Body, hostname: string): Promise<string> {
  const domains = `/v2/cdn_zones/${String(zone.id)}/domains`;
  // Of a zone that had it, it is free when its row has gone.
  const { body } = await waitFor('the domain', async () => {
    const made = await service.call('POST', domains, { body: { hostname } });
    return made.status === 201 && made;
  });
  dns.set(hostname, 'CNAME', [String(zone.hostname)]);
  expect((await service.call('POST', `${domains}/${String(body.id)}/verify`)).body.status).toBe('active');
  return `${domains}/${String(body.id)}`;
}

/** Milliseconds that the work takes. */
async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

test('a zone is served by each from a cache of its own, and a purge that is completed is done in all', async () => {
  const zone = await servedZone();
  const targets = ['/a/1?max-age=600&tag=red', '/a/2?max-age=600&tag=blue', '/b?max-age=600&tag=red'];
  const fill = async (): Promise<void> => {
    for (const target of targets) for (let turn = 0; turn < 2; turn += 1) await statesOf(zone, target);
  };
  const kept = async (): Promise<boolean[][]> =>
    Promise.all(targets.map(async (target) => (await statesOf(zone, target)).map((state) => state === HIT)));
  for (const [body, stays] of [
    [{ type: 'urls', values: ['/a/1?max-age=600&tag=red'] }, [false, true, true]],
    [{ type: 'prefixes', values: ['/a/'] }, [false, false, true]],
    [{ type: 'tags', values: ['red'] }, [false, true, false]],
    [{ type: 'all' }, [false, false, false]],
  ] as const) {
    await fill();
    expect(await timed(() => purge(zone, body))).toBeLessThan(3_000);
    expect(await kept()).toEqual(stays.map((stay) => [stay, stay, stay]));
  }
  // Once of each cache, for the first visit and after each purge that meant it.
  expect(origin.requests('/b')).toHaveLength(9);
});

test('a name that no zone has is unknown, and one of another zone shows nothing of this one', async () => {
  const [mine, theirs] = [await servedZone(), await servedZone()];
  await statesOf(mine, '/secret?max-age=600');
  expect(await statesOf(theirs, '/secret?max-age=600')).toEqual([MISS, MISS, MISS]);
  for (const port of allPorts()) expect((await at(port, 'nobody.example.org', '/secret?max-age=600')).status).toBe(404);
});

test('changed rules, a name that moves and a zone that is deleted are known to all within a second', async () => {
  const [first, second] = [await servedZone(), await servedZone()];
  const target = '/moving?max-age=600';
  const ruled = await service.call('PATCH', `/v2/cdn_zones/${String(first.id)}`, {
    body: { cache: { browser_ttl_seconds: 7 } },
    headers: { Prefer: 'wait=20' },
  });
  expect(ruled.body.status).toBe('active');
  const everywhere = async (what: string, host: unknown, fits: (seen: Visited) => boolean): Promise<void> => {
    const took = await timed(() =>
      waitFor(what, async () => (await Promise.all(allPorts().map((port) => at(port, host, target)))).every(fits)),
    );
    // On a busy machine a little more.
    expect(took).toBeLessThan(5_000);
  };
  await everywhere('the rule', first.hostname, ({ headers }) => headers['cache-control'] === 'max-age=7');
  const name = 'moves.example.com';
  const domain = await domainOf(first, name);
  await everywhere('the name', name, ({ headers }) => headers['cache-control'] === 'max-age=7');
  expect((await service.call('DELETE', domain)).status).toBe(204);
  await everywhere('its end', name, ({ status }) => status === 404);
  const moved = await domainOf(second, name);
  await everywhere('its new zone', name, ({ headers }) => headers['cache-control'] === 'max-age=600');
  // The objects that the name had in the other zone stay with that.
  expect(origin.requests('/moving').filter(({ headers }) => headers['x-forwarded-host'] === name)).toHaveLength(6);
  expect((await service.call('DELETE', moved)).status).toBe(204);
  expect((await service.call('DELETE', `/v2/cdn_zones/${String(first.id)}`)).status).toBe(204);
  await everywhere('the end of the zone', first.hostname, ({ status }) => status === 404);
});

test('a bucket is read with the key of the platform at each', async () => {
  const bucket = (await service.call('POST', '/v2/buckets', { body: { name: 'shared-by-all' }, ...WAITED })).body;
  const put = { method: 'PUT', key: 'a.txt' };
  const { url } = (await service.call('POST', `/v2/buckets/${String(bucket.id)}/presign`, { body: put })).body;
  expect((await fetch(url as string, { method: 'PUT', body: 'of the bucket' })).status).toBe(200);
  const body = { name: 'over-bucket', origin: { type: 'bucket', bucket_id: bucket.id } };
  const zone = (await service.call('POST', '/v2/cdn_zones', { body, ...WAITED })).body;
  for (const port of allPorts())
    await waitFor('the object', async () => (await at(port, zone.hostname, '/a.txt')).body === 'of the bucket');
});

const WAITED = { headers: { Prefer: 'wait=20' } };

test('the counters of all add up', async () => {
  const zone = await servedZone();
  const before = allPorts().length;
  for (let turn = 0; turn < 4; turn += 1) await statesOf(zone, '/counted?max-age=600');
  const sums = async (): Promise<Record<string, number>> => {
    const { body } = await service.call('GET', `/v2/cdn_zones/${String(zone.id)}/metrics`);
    return Object.fromEntries(
      (body.series as Body[]).map(({ metric, points }) => [
        metric,
        (points as { value: number }[]).reduce((sum, { value }) => sum + value, 0),
      ]),
    );
  };
  const found = await waitFor('the counters', async () => {
    const { requests = 0, origin_requests = 0 } = await sums();
    return requests >= before + 12 && { requests, origin_requests };
  });
  expect(found).toEqual({ requests: before + 12, origin_requests: before + 3 });
});

test('a lost connection to the database loses no purge and no zone', async () => {
  const zone = await servedZone();
  for (let turn = 0; turn < 2; turn += 1) await statesOf(zone, '/lost?max-age=600');
  await service.sql(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
    and application_name = 'platform-api listener'`);
  await purge(zone, { type: 'all' });
  expect(await statesOf(zone, '/lost?max-age=600')).not.toContain(HIT);
  await servedZone();
});

test('one that stands still holds a purge up for seconds, and serves nothing purged when it goes on', async () => {
  const zone = await servedZone();
  const target = '/standing?max-age=600';
  for (let turn = 0; turn < 2; turn += 1) await statesOf(zone, target);
  one.program.signal('SIGSTOP');
  try {
    const took = await timed(() => purge(zone, { type: 'all' }));
    expect(took).toBeGreaterThan(2_000);
    expect(took).toBeLessThan(15_000);
    expect(await stateAt(other.port, zone, target)).toBe(MISS);
    // Waits in the socket, so it is read before anything of the database.
    const waiting = stateAt(one.port, zone, target);
    await sleep(100);
    one.program.signal('SIGCONT');
    expect(await waiting).toBe(ORIGIN_ONLY);
  } finally {
    one.program.signal('SIGCONT');
  }
  await waitFor('its cache', async () => (await stateAt(one.port, zone, target)) === HIT);
  expect(origin.requests('/standing').length).toBeGreaterThanOrEqual(6);
  expect(await timed(() => purge(zone, { type: 'all' }))).toBeLessThan(3_000);
});

test('one that is killed holds a purge up for seconds, and begins empty when it is back', async () => {
  const zone = await servedZone();
  const target = '/killed?max-age=600';
  for (let turn = 0; turn < 2; turn += 1) await statesOf(zone, target);
  one.program.signal('SIGKILL');
  await one.program.ended;
  expect(await timed(() => purge(zone, { type: 'all' }))).toBeLessThan(15_000);
  expect(await stateAt(other.port, zone, target)).toBe(MISS);
  const directories = (): string[] =>
    readdirSync(path.join(service.platform.config.cdnDir, 'ingresses')).filter((name) =>
      name.includes(`_${one.port}_`),
    );
  const [left] = directories();
  one = await startFurther(one.port);
  expect(await stateAt(one.port, zone, target)).toBe(MISS);
  expect(await stateAt(one.port, zone, target)).toBe(HIT);
  await waitFor('what it left has gone', () => Promise.resolve(directories().every((name) => name !== left)));
  one.program.signal('SIGTERM');
  expect(await one.program.ended).toBe(0);
  expect(directories()).toEqual([]);
  // One that has ended in order is not waited for at all.
  expect(await timed(() => purge(zone, { type: 'all' }))).toBeLessThan(2_000);
});
