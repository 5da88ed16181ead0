/** @tier both @quarter 1 @covers engines/dns/nameserver */
// Name servers by the rules of all drivers: the embedded one, and PowerDNS of Debian. Killed at every step.
import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { SigningKey } from '../../../core/protocols/dnssec';
import { driverContext, type Desired } from '../../../core/driver';
import type { NameserverDriver, ZoneObserved, ZoneRecord, ZoneSpec } from '../../../engines/dns/nameserver';
import { openPowerdns } from '../../../drivers/powerdns/driver';
import { describeResourceDriver, type ResourceFixture } from '../../conformance/resource_driver';
import { isHeavyRun } from '../../support/processes/kills';
import { openFiles } from '../../support/dns/nameservers';
import { startPowerdns, type Powerdns } from '../../support/dns/powerdns';
import { fileNeeds, named, needs } from '../../support/runner/programs';

const run = promisify(execFile);

fileNeeds('dig');

const record = (type: ZoneRecord['type'], name: string, value: string, more: Partial<ZoneRecord> = {}): ZoneRecord => ({
  ...{ type, name, value, ttl: null },
  ...more,
});
const newKey = (role: SigningKey['role']): SigningKey => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { role, private_key: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64') };
};

const RECORDS = [
  record('A', 'www', '192.0.2.1', { ttl: 300 }),
  record('AAAA', 'www', '2001:db8::1'),
  record('TXT', '@', 'text with "quotes", a \\ and ünicode'),
  record('TXT', 'long', 'x'.repeat(600)),
  record('MX', '@', 'mail.example.net', { priority: 10 }),
  record('SRV', '_sip._tcp', 'sip.example.net', { priority: 1, weight: 2, port: 5060 }),
  record('MX', 'nomail', '.', { priority: 0 }),
  record('SRV', '_none._tcp', '.', { priority: 0, weight: 0, port: 0 }),
  record('CAA', '@', 'ca.example.net', { flags: 0, tag: 'issue' }),
  record('CNAME', 'alias', 'www.example.net'),
  record('NS', 'child', 'ns.elsewhere.example.net'),
];
const SPEC: ZoneSpec = {
  ...{ name: 'example.com', serial: 1, default_ttl: 3600, name_servers: ['ns1.example.net', 'ns2.example.net'] },
  soa: { email: 'host.master@example.com', refresh: 7200, retry: 3600, expire: 1_209_600, minimum: 300 },
  ...{ records: RECORDS, keys: [] },
};
// A name that changes from CNAME to addresses, a new TTL of negative answers, and signatures.
const CHANGED: ZoneSpec = {
  ...SPEC,
  serial: 2,
  soa: { ...SPEC.soa, minimum: 60 },
  records: [...RECORDS.filter(({ name }) => name !== 'alias'), record('A', 'alias', '192.0.2.2')],
  keys: [newKey('ksk'), newKey('zsk')],
};
const nameOf = (id: string): string => `${id.replaceAll('_', '-')}.example.com`;
const specOf = (spec: ZoneSpec, id: string): ZoneSpec => ({ ...spec, name: nameOf(id) });
const usual = { spec: SPEC, changed: CHANGED, specOf, use: async () => {} };

async function dig(port: number, ...question: string[]): Promise<string> {
  const args = ['@127.0.0.1', '-p', String(port), '+tries=1', '+time=2', '+dnssec', ...question];
  return (await run('dig', args)).stdout;
}

/** What a client sees of the changed zone. */
async function isServed(port: number, { id }: Desired<ZoneSpec>): Promise<void> {
  const zone = nameOf(id);
  const answer = await dig(port, `alias.${zone}`, 'A');
  expect(answer).toMatch(/\sA\s+192\.0\.2\.2/);
  expect(answer).toContain('RRSIG');
  expect(await dig(port, zone, 'TXT', '+short')).toContain('text with \\"quotes\\", a \\\\ and \\195\\188nicode');
  expect(await dig(port, `nomail.${zone}`, 'MX', '+short')).toMatch(/^0 \.$/m);
  expect(await dig(port, `_none._tcp.${zone}`, 'SRV', '+short')).toMatch(/^0 0 0 \.$/m);
  expect(await dig(port, zone, 'CDS', '+short')).toMatch(/ 13 2 /);
}

describeResourceDriver<ZoneSpec, ZoneObserved>('embedded', async () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'nameserver-'));
  // Each call opens it anew, so it serves what is on disk.
  const fixture: ResourceFixture<ZoneSpec, ZoneObserved> = {
    ...usual,
    driver: openFiles({ directory }),
    recipe: { module: 'test/support/dns/nameservers', factory: 'openFiles', options: { directory } },
    async snapshot() {
      const files = readdirSync(directory).filter((name) => name.endsWith('.json'));
      return Object.fromEntries(files.sort().map((name) => [name, readFileSync(path.join(directory, name), 'utf8')]));
    },
    async check(_, r) {
      const { driver, port, close } = await openFiles.listening({ directory });
      try {
        await isServed(port, r);
        expect(await driver.observe(r, driverContext(5_000))).toMatchObject({ state: 'present', upToDate: true });
      } finally {
        await close();
      }
    },
    drifts: {
      older: async (id) => {
        const file = path.join(directory, `${id}.json`);
        const zone = JSON.parse(readFileSync(file, 'utf8'));
        writeFileSync(file, JSON.stringify({ ...zone, records: zone.records.slice(1) }));
      },
    },
    async plantForeign(id) {
      const spec = specOf(SPEC, id);
      const other = { id: `other_${id}`, spec };
      await fixture.driver.ensure(other, { state: 'absent' }, driverContext(5_000));
    },
    async uprootForeign(id) {
      const other = { id: `other_${id}`, spec: specOf(SPEC, id) };
      await fixture.driver.remove(other, { state: 'absent' }, driverContext(5_000));
    },
    async close() {
      expect(readdirSync(directory)).toEqual([]);
      rmSync(directory, { recursive: true });
    },
  };
  return fixture;
});

const describePowerdns = isHeavyRun()
  ? needs('pdns_server').describe
  : (named(describe.skip, ' (in the heavy tier)') as jest.Describe);

describePowerdns('PowerDNS', () => describeResourceDriver<ZoneSpec, ZoneObserved>('powerdns', makePowerdnsFixture));

async function makePowerdnsFixture(): Promise<ResourceFixture<ZoneSpec, ZoneObserved>> {
  const server: Powerdns = await startPowerdns();
  // A zone of somebody else stays as it is, whatever happens.
  const foreign = (name: string, account: string): Promise<unknown> =>
    server.call('POST', '/zones', { name: `${name}.`, kind: 'Native', account, nameservers: ['ns.example.org.'] });
  await foreign('theirs.example.org', '');
  const options = { url: server.url, key: server.key };
  const patch = (id: string, rrset: object): Promise<unknown> =>
    server.call('PATCH', `/zones/${nameOf(id)}.`, { rrsets: [rrset] });
  return {
    ...usual,
    driver: openPowerdns(options),
    recipe: { module: 'drivers/powerdns/driver', factory: 'openPowerdns', options },
    async snapshot() {
      const zones = await server.call('GET', '/zones');
      const whole = zones.map(({ id }: { id: string }) => server.call('GET', `/zones/${id}`));
      return Promise.all(whole);
    },
    check: (_, r) => isServed(server.port, r),
    drifts: {
      removedSet: (id) => patch(id, { name: `www.${nameOf(id)}.`, type: 'A', changetype: 'DELETE' }) as Promise<void>,
      addedSet: (id) =>
        patch(id, {
          ...{ name: `more.${nameOf(id)}.`, type: 'A', ttl: 60, changetype: 'REPLACE' },
          records: [{ content: '192.0.2.66', disabled: false }],
        }) as Promise<void>,
      disabled: (id) =>
        patch(id, {
          ...{ name: `www.${nameOf(id)}.`, type: 'A', ttl: 300, changetype: 'REPLACE' },
          records: [{ content: '192.0.2.1', disabled: true }],
        }) as Promise<void>,
      anotherKind: (id) => server.call('PUT', `/zones/${nameOf(id)}.`, { kind: 'Native' }),
      aStrangeKey: (id) =>
        server.call('POST', `/zones/${nameOf(id)}./cryptokeys`, { keytype: 'csk', active: true }) as Promise<void>,
    },
    plantForeign: async (id) => void (await foreign(nameOf(id), 'somebody')),
    uprootForeign: (id) => server.call('DELETE', `/zones/${nameOf(id)}.`),
    async close() {
      const left = await server.call('GET', '/zones');
      await server.close();
      expect(left.map(({ name }: { name: string }) => name)).toEqual(['theirs.example.org.']);
    },
  };
}

describePowerdns('PowerDNS and its API', () => {
  let server: Powerdns;
  let driver: NameserverDriver;
  const r = { id: 'res_bad', spec: specOf(SPEC, 'res_bad') };
  const ctx = () => driverContext(10_000);

  beforeAll(async () => {
    server = await startPowerdns();
    driver = openPowerdns({ url: server.url, key: server.key });
  });
  afterAll(() => server.close());

  test('gone, it is asked again later; a wrong key is said', async () => {
    await driver.ensure(r, { state: 'absent' }, ctx());
    await server.stop();
    await expect(driver.observe(r, ctx())).rejects.toMatchObject({ name: 'DriverError', reason: 'transient' });
    expect(await driver.fingerprint(ctx())).toMatchObject({ healthy: false });
    await server.start();
    expect(await driver.observe(r, ctx())).toMatchObject({ state: 'present', upToDate: true });
    const stranger = openPowerdns({ url: server.url, key: 'wrong' });
    await expect(stranger.observe(r, ctx())).rejects.toMatchObject({ name: 'DriverError', reason: 'unauthorized' });
  });

  test('answering 500, it is asked again later, and then has everything', async () => {
    const proxy = await startFaultyProxy(server.url);
    try {
      const through = openPowerdns({ url: proxy.url, key: server.key });
      const changed = { id: r.id, spec: { ...r.spec, records: [...RECORDS, record('A', 'new', '192.0.2.3')] } };
      // After each number of answers: before the change, between its calls, behind it.
      for (let answers = 0; answers < 4; answers += 1) {
        proxy.failAfter(answers);
        await through.ensure(changed, { state: 'absent' }, ctx()).catch((error: unknown) => {
          expect(error).toMatchObject({ name: 'DriverError', reason: 'transient' });
        });
      }
      proxy.failAfter(0);
      await expect(through.observe(changed, ctx())).rejects.toMatchObject({ reason: 'transient' });
      proxy.failAfter(Infinity);
      await through.ensure(changed, { state: 'absent' }, ctx());
      expect(await through.observe(changed, ctx())).toMatchObject({ state: 'present', upToDate: true });
      await through.ensure(r, { state: 'absent' }, ctx());
    } finally {
      await proxy.close();
    }
  });

  test('a zone deleted behind our back is made again with everything', async () => {
    await server.call('DELETE', `/zones/${r.spec.name}.`);
    expect(await driver.observe(r, ctx())).toMatchObject({ state: 'absent' });
    await driver.ensure(r, { state: 'absent' }, ctx());
    expect(await driver.observe(r, ctx())).toMatchObject({ state: 'present', upToDate: true });
    expect(await dig(server.port, `www.${r.spec.name}`, 'A', '+short')).toContain('192.0.2.1');
  });

  test('2,000 records of 4,096 bytes fit, in several bodies', async () => {
    const large = {
      ...r.spec,
      records: Array.from({ length: 2000 }, (_, i) => record('TXT', `t${i}`, 'x'.repeat(4096))),
    };
    await driver.ensure({ id: r.id, spec: large }, { state: 'absent' }, driverContext(60_000));
    expect(await driver.observe({ id: r.id, spec: large }, driverContext(60_000))).toMatchObject({ upToDate: true });
    await driver.ensure(r, { state: 'absent' }, driverContext(60_000));
  }, 180_000);

  test('questions are counted by zone and type', async () => {
    await driver.takeCounters(ctx());
    for (let turn = 0; turn < 3; turn += 1) await dig(server.port, `www.${r.spec.name}`, 'A');
    await dig(server.port, `nothing.${r.spec.name}`, 'AAAA');
    await dig(server.port, 'elsewhere.example.org', 'A');
    const counted = await driver.takeCounters(ctx());
    expect([...counted.keys()]).toEqual([r.id]);
    expect(Object.fromEntries(counted.get(r.id) ?? [])).toEqual({
      A: { queries: 3, noerror: 3, nxdomain: 0, servfail: 0 },
      AAAA: { queries: 1, noerror: 0, nxdomain: 1, servfail: 0 },
    });
    expect((await driver.takeCounters(ctx())).size).toBe(0);
  });
});

interface FaultyProxy {
  url: string;
  /** Answers 500 once so many requests have passed. */
  failAfter(requests: number): void;
  close(): Promise<void>;
}

/** Before a real server, whose answers it passes on. */
async function startFaultyProxy(target: string): Promise<FaultyProxy> {
  let left = Infinity;
  const proxy = createServer((request, response) => {
    left -= 1;
    if (left < 0) return void response.writeHead(500, { 'Content-Type': 'text/plain' }).end('Internal Server Error');
    const { method, headers, url } = request;
    const forwarded = forward(`${target}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    forwarded.on('error', () => response.destroy());
    return void request.pipe(forwarded);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    failAfter: (requests) => void (left = requests),
    close: () =>
      new Promise((resolve) => {
        proxy.closeAllConnections();
        proxy.close(() => resolve());
      }),
  };
}
