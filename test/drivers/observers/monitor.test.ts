// Checks against a target that is broken in every way, over real sockets. Only 127.0.0.1 counts as public here, so that
// every other address of the loopback network stands for a private one.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { CheckOutcome, UptimeCheck } from '../../../core/protocols/checks';
import { openMonitor } from '../../../drivers/monitor/open';
import type { Monitor } from '../../../drivers/monitor';
import { openOutbound } from '../../../core/outbound';
import { makeAuthority, type Authority } from '../../support/databases/authority';
import {
  closedPort,
  startFullQueue,
  startSilence,
  startTarget,
  type Target,
} from '../../support/deployments/breakable_target';
import { startDnsServer, type DnsServer } from '../../support/dns/dns_server';

let dns: DnsServer;
let authority: Authority;
let monitor: Monitor;
let target: Target;
let secret: Target;
let directory: string;
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'monitor-'));
  authority = await makeAuthority();
  dns = await startDnsServer({ 'up.example.com A': ['127.0.0.1'], 'inside.example.com A': ['127.0.0.2'] });
  dns.set('mixed.example.com', 'A', ['127.0.0.1', '10.0.0.1']);
  dns.fail('failing.example.com');
  monitor = openMonitor(
    openOutbound({
      isAllowed: (address) => address === '127.0.0.1',
      hostsFile: false,
      resolvers: [dns.address],
      caFile: authority.write(path.join(directory, 'ca.pem')),
    }),
  );
  target = await startTarget();
  secret = await startTarget();
  open.push(target, secret, dns);
});

afterAll(async () => {
  for (const part of open) await part.close();
  rmSync(directory, { recursive: true });
});

function check(changes: Partial<UptimeCheck>): Promise<CheckOutcome> {
  return monitor.check({
    ...{ check: 'http', target: `http://127.0.0.1:${target.port}/ok`, method: 'GET', headers: [] },
    ...{ expected_status_codes: [], expected_body: null, follow_redirects: true, verify_tls: true, timeout_seconds: 2 },
    ...changes,
  });
}

const at = (place: string): string => `http://127.0.0.1:${target.port}${place}`;

const hasPing = spawnSync('ping', ['-c', '1', '-W', '1', '127.0.0.1']).status === 0;
const withPing = hasPing ? test : test.skip;

withPing('a ping is answered, or not, and goes to no private address (needs iputils-ping)', async () => {
  const ping = (address: string): Promise<CheckOutcome> =>
    check({ check: 'ping', target: address, timeout_seconds: 1 });
  expect(await ping('up.example.com')).toMatchObject({ status: 'pass', status_code: null, error: null });
  expect((await ping('127.0.0.1')).response_time_ms).toBeGreaterThanOrEqual(0);
  expect(await ping('127.0.0.2')).toMatchObject({ status: 'fail', error: expect.stringContaining('not public') });
});

test('a target that answers passes, with the parts of its time', async () => {
  const outcome = await check({ target: `http://up.example.com:${target.port}/ok`, expected_body: 'is well' });
  expect(outcome).toMatchObject({ status: 'pass', status_code: 200, error: null, certificate_expires_at: null });
  const { timings, response_time_ms } = outcome;
  expect(timings).toEqual({
    dns_ms: expect.any(Number),
    connect_ms: expect.any(Number),
    tls_ms: null,
    first_byte_ms: expect.any(Number),
  });
  expect(response_time_ms).toBeGreaterThan(0);
});

test('method, headers and status codes are as the check says', async () => {
  const headers = [{ name: 'X-Key', value: 'abc' }];
  const asked = { target: at('/status/418'), method: 'POST' as const, headers, expected_status_codes: [418] };
  expect(await check(asked)).toMatchObject({ status: 'pass', status_code: 418 });
  expect(target.heard.at(-1)).toMatchObject({ method: 'POST', headers: { 'x-key': 'abc', 'content-length': '0' } });
  expect(await check({ target: at('/ok'), method: 'HEAD' })).toMatchObject({ status: 'pass', status_code: 200 });
  expect(await check({ target: at('/status/302'), follow_redirects: false })).toMatchObject({ status: 'pass' });
});

describe('a broken target fails with its reason', () => {
  const cases: [string, Partial<UptimeCheck> | (() => Promise<Partial<UptimeCheck>>), string][] = [
    ['a status', () => Promise.resolve({ target: at('/status/503') }), 'The answer had the status 503.'],
    [
      'another text',
      () => Promise.resolve({ expected_body: 'on fire' }),
      'The answer did not contain the expected text.',
    ],
    ['no listener', async () => ({ target: `http://127.0.0.1:${await closedPort()}/` }), 'was refused'],
    ['no answer', () => Promise.resolve({ target: at('/hang') }), 'reached before the response began'],
    ['a stalled body', () => Promise.resolve({ target: at('/stall') }), 'reached before the response was complete'],
    ['a dripping body', () => Promise.resolve({ target: at('/drip') }), 'reached before the response was complete'],
    ['a body that is cut', () => Promise.resolve({ target: at('/cut') }), 'broke off before its end'],
    ['a reset', () => Promise.resolve({ target: at('/reset') }), 'closed before an answer came'],
    ['no HTTP', () => Promise.resolve({ target: at('/garbage') }), 'not valid HTTP'],
    ['a loop', () => Promise.resolve({ target: at('/loop') }), 'redirected more than 5 times'],
    [
      'a redirect to a file',
      () => Promise.resolve({ target: at('/redirect/file:%2F%2F%2Fetc%2Fpasswd') }),
      'not a valid http or https URL',
    ],
    ['no such name', { target: 'http://gone.example.com/' }, 'no address for gone.example.com'],
    ['a reserved name', { target: 'http://check.invalid/' }, 'no address for check.invalid'],
    ['name servers that fail', { target: 'http://failing.example.com/' }, 'The DNS servers gave no answer'],
  ];

  test.each(cases)('%s', async (_, given, error) => {
    const outcome = await check(typeof given === 'function' ? await given() : given);
    expect(outcome).toMatchObject({ status: 'fail', error: expect.stringContaining(error) });
  });

  test('silence of the name servers, and of the host while it is connected to', async () => {
    dns.ignore('silent.example.com');
    const names = check({ target: 'http://silent.example.com/', timeout_seconds: 1 });
    expect(await names).toMatchObject({
      ...{
        status: 'fail',
        error: 'The time limit of 1 s was reached while the host name was resolved.',
        unreachable: true,
      },
    });
    const full = await startFullQueue();
    open.push(full);
    for (const [kind, place] of [
      ['http', `http://127.0.0.1:${full.port}/`],
      ['tcp', `127.0.0.1:${full.port}`],
    ] as const)
      expect(await check({ check: kind, target: place, timeout_seconds: 1 })).toMatchObject({
        ...{
          status: 'fail',
          error: 'The time limit of 1 s was reached while the connection was made.',
          unreachable: true,
        },
        timings: { dns_ms: expect.any(Number), connect_ms: null, first_byte_ms: null },
      });
  });

  test('silence in the TLS handshake', async () => {
    const silence = await startSilence();
    open.push(silence);
    const outcome = await check({ target: `https://127.0.0.1:${silence.port}/` });
    expect(outcome).toMatchObject({
      status: 'fail',
      error: 'The time limit of 2 s was reached during the TLS handshake.',
    });
  });

  test('a body without an end is read no further than a MiB', async () => {
    const before = process.memoryUsage().rss;
    expect(await check({ target: at('/huge') })).toMatchObject({ status: 'pass' });
    expect(await check({ target: at('/huge'), expected_body: 'y' })).toMatchObject({
      error: 'The answer did not contain the expected text in its first MiB.',
    });
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
  });
});

describe('certificates', () => {
  async function startSecure(names: string[], days?: { from: number; until: number }): Promise<string> {
    const secure = await startTarget(await authority.issue(names, days));
    open.push(secure);
    return `https://up.example.com:${secure.port}/ok`;
  }

  test('a good one shows when it expires', async () => {
    const outcome = await check({ target: await startSecure(['up.example.com']) });
    expect(outcome).toMatchObject({ status: 'pass', timings: { tls_ms: expect.any(Number) } });
    const days = (Date.parse(outcome.certificate_expires_at ?? '') - Date.now()) / 86_400_000;
    expect(Math.round(days)).toBe(30);
  });

  test('an expired one fails, and shows when it expired', async () => {
    const place = await startSecure(['up.example.com'], { from: -30, until: -2 });
    const outcome = await check({ target: place });
    expect(outcome).toMatchObject({ status: 'fail', error: expect.stringMatching(/^The certificate expired at 20/) });
    expect(Date.parse(outcome.certificate_expires_at ?? '')).toBeLessThan(Date.now());
    expect(await check({ target: place, verify_tls: false })).toMatchObject({ status: 'pass' });
  });

  test('one for another name, and one of nobody, fail', async () => {
    const other = await check({ target: await startSecure(['other.example.com']) });
    expect(other).toMatchObject({ status: 'fail', error: 'The certificate is not for up.example.com.' });
    const stranger = await startTarget(await (await makeAuthority()).issue(['up.example.com']));
    open.push(stranger);
    const outcome = await check({ target: `https://up.example.com:${stranger.port}/ok` });
    expect(outcome).toMatchObject({ status: 'fail', error: expect.stringContaining('not trusted') });
    expect(outcome.certificate_expires_at).not.toBeNull();
  });
});

describe('addresses that are not public are not connected to', () => {
  const hidden = (host: string): string => `http://${host}:${secret.port}/ok`;
  const places: [string, () => string][] = [
    ['an address', () => hidden('127.0.0.2')],
    ['a decimal address', () => hidden('2130706434')],
    ['an octal address', () => hidden('0177.0.0.2')],
    ['IPv6 loopback', () => hidden('[::1]')],
    ['a mapped address', () => hidden('[::ffff:127.0.0.2]')],
    ['the metadata of a cloud', () => 'http://169.254.169.254/latest/meta-data/'],
    ['a name', () => hidden('inside.example.com')],
    ['a name with two addresses', () => hidden('mixed.example.com')],
  ];

  test.each(places)('%s, at once and behind a redirect', async (_, place) => {
    const refused = { status: 'fail', error: expect.stringContaining('not public') };
    expect(await check({ target: place() })).toMatchObject(refused);
    expect(await check({ target: at(`/redirect/${encodeURIComponent(place())}`) })).toMatchObject(refused);
    expect(secret.heard).toEqual([]);
  });

  test('a name whose address changes between two checks', async () => {
    dns.set('flips.example.com', 'A', ['127.0.0.1']);
    expect(await check({ target: `http://flips.example.com:${target.port}/ok` })).toMatchObject({ status: 'pass' });
    dns.set('flips.example.com', 'A', ['127.0.0.2']);
    expect(await check({ target: hidden('flips.example.com') })).toMatchObject({ status: 'fail' });
    expect(secret.heard).toEqual([]);
  });

  test('secret headers do not follow a redirect to another origin', async () => {
    const other = await startTarget();
    open.push(other);
    const headers = [{ name: 'Authorization', value: 'Bearer abc' }];
    const place = encodeURIComponent(`http://127.0.0.1:${other.port}/ok`);
    expect(await check({ target: at(`/redirect/${place}`), headers })).toMatchObject({ status: 'pass' });
    expect(target.heard.at(-1)?.headers).toMatchObject({ authorization: 'Bearer abc' });
    expect(other.heard[0]?.headers).not.toHaveProperty('authorization');
  });
});

describe('tcp', () => {
  test('passes where something listens, and fails where nothing does', async () => {
    const silence = await startSilence();
    open.push(silence);
    expect(await check({ check: 'tcp', target: `up.example.com:${silence.port}` })).toMatchObject({ status: 'pass' });
    const refused = await check({ check: 'tcp', target: `127.0.0.1:${await closedPort()}` });
    expect(refused).toMatchObject({ status: 'fail', error: expect.stringContaining('refused'), unreachable: false });
    expect(await check({ check: 'tcp', target: `127.0.0.2:${silence.port}` })).toMatchObject({ status: 'fail' });
  });
});
