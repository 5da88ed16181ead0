/** @tier heavy @quarter 2 @covers jobs/observers/alarms models/observers/installation_alarm server/agents */
// The causes of alarms of the installation, made and taken away: a small disk, a server that hangs, a queue that nobody
// works on, a wrong clock, promises of memory, background work that fails. Each is told once with its end.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { repeatWork } from '../../core/process/background';
import { withConfig } from '../support/config';
import { makeAuthority } from '../support/databases/authority';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { startReceiver, until, type Receiver } from '../support/email/receivers';
import { nodeApp } from '../support/git/repositories';
import { observersOf } from '../support/observers/observers';
import { freePort } from '../support/processes/free_port';
import { processesWith, signalAll } from '../support/processes/processes';

const home = mkdtempSync(path.join(tmpdir(), 'platform-alarms-'));
const small = path.join(home, 'objects');
let service: DeployService;
let receiver: Receiver;
let application: TestApplication;
let beats = 0;
/** By how much the clock of the server elsewhere differs from ours, in ms. */
let otherClock = 0;

// Only root may mount; elsewhere there is no small disk to fill.
const mounted = process.getuid?.() === 0 && mount();

function mount(): boolean {
  mkdirSync(small);
  try {
    const options = 'size=10m,nr_inodes=200,mode=711';
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', small], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const elsewhere = http.createServer((request, response) => {
  if (request.url === '/beat') beats += 1;
  response.setHeader('Date', new Date(Date.now() + otherClock).toUTCString()).end();
});

beforeAll(async () => {
  const authority = await makeAuthority();
  receiver = await startReceiver(await authority.issue(['127.0.0.1']));
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`;
  service = await startDeployService({
    ...withConfig({ alarmSeconds: 0.2, dnsProcess: 'separate', ...(mounted && { s3Dir: small }) }),
    ...{ ALLOW_PRIVATE_ADDRESSES: '1', OUTBOUND_CA_FILE: authority.write(path.join(home, 'ca.pem')) },
    ...{ DNS_PORT: String(await freePort()), DNS_LISTEN: '127.0.0.1' },
    ...{ RELEASES_URL: url, RELEASES_NOTICE: '0', HEARTBEAT_URL: `${url}/beat`, LOG_LEVEL: 'silent' },
  });
  const { id } = await observersOf(service).notifier({ config: { url: `https://127.0.0.1:${receiver.port}/alarms` } });
  await service.sql('insert into alarm_notifiers (notifier_id) values ($1)', [id]);
  application = await service.application(nodeApp('v1'));
  expect((await application.deploy()).status).toBe('active');
}, 120_000);

afterAll(async () => {
  await service?.close();
  await receiver?.close();
  elsewhere.close();
  if (mounted) execFileSync('umount', ['-l', small]);
  rmSync(home, { recursive: true, force: true });
}, 60_000);

/** What the receiver got of an alarm: event and title, in order. */
const told = (name: string): [string, string][] =>
  receiver
    .at('/alarms')
    .map(({ body }) => body)
    .filter(({ data }) => data?.alarm?.name === name)
    .map(({ type, event, data }) => [String(type ?? event).replace('installation.alarm_', ''), data.alarm.title]);
const events = (name: string): string[] => told(name).map(([event]) => event);
const ago = (name: string, column: string, seconds: number): Promise<unknown> =>
  service.sql(`update installation_alarms set ${column} = ${column} - make_interval(secs => $2) where name = $1`, [
    name,
    seconds,
  ]);
/** Waits until the column is set, and moves it into the past. */
const moved = (name: string, column: string, seconds: number): Promise<unknown> =>
  until(async () => {
    const found = await service.sql(`select 1 from installation_alarms where name = $1 and ${column} is not null`, [
      name,
    ]);
    return found.length > 0 && (await ago(name, column, seconds).then(() => true));
  });
/** The next evaluations have been made. */
async function evaluated(): Promise<void> {
  const last = async (): Promise<string> =>
    (await service.sql('select evaluated_at from alarm_evaluations'))[0].evaluated_at;
  for (let turn = 0; turn < 2; turn += 1) {
    const before = await last();
    await until(async () => (await last()) !== before);
  }
}

const ballast = path.join(small, 'ballast');
const fill = (percent: number): void =>
  writeFileSync(ballast, Buffer.alloc(Math.floor((10 * 2 ** 20 * percent) / 100)));

(mounted ? test : test.skip)(
  'a disk that fills up: three levels, no builds and no volumes at the last, and its end',
  async () => {
    for (const [percent, count] of [
      [85, 1],
      [79, 1],
      [83, 1],
      [92, 2],
      [97, 3],
    ] as const) {
      fill(percent);
      await evaluated();
      await until(() => told('disk').length >= count);
      expect(told('disk')).toHaveLength(count);
    }
    const answer = await service.call('POST', '/v2/volumes', { body: { name: 'data', size_gb: 1 } });
    expect([answer.status, answer.body.code]).toEqual([expect.any(Number), 'capacity_unavailable']);
    expect(answer.body.detail).toMatch(/^The disk of .* is 97 % full, .* free\. Nothing can be made/);
    const failed = await application.deploy();
    expect([failed.status, failed.status_reason]).toEqual([
      'failed',
      expect.stringMatching(/97 % full.*Nothing is built/),
    ]);
    // What runs, runs on.
    expect((await application.visit()).status).toBe(200);
    rmSync(ballast);
    await until(() => events('disk').length === 4);
    expect(events('disk')).toEqual(['started', 'started', 'started', 'ended']);
    expect((await application.deploy()).status).toBe('active');
  },
  120_000,
);

(mounted ? test : test.skip)(
  'a disk without inodes',
  async () => {
    const many = path.join(small, 'many');
    mkdirSync(many);
    for (let index = 0; index < 170; index += 1) writeFileSync(path.join(many, String(index)), '');
    await until(() => told('inodes').length === 1);
    expect(told('inodes')[0]?.[1]).toMatch(/has used 8\d % of its inodes$/);
    rmSync(many, { recursive: true });
    await until(() => events('inodes').at(-1) === 'ended');
    expect(told('disk').length).toBe(4);
  },
  60_000,
);

test('a name server that hangs, told after a minute, and its end after two', async () => {
  const answerer = processesWith('engines/dns/process/process').find(({ parent }) => parent === process.pid);
  const pid = answerer?.pid as number;
  signalAll([pid], 'SIGSTOP');
  try {
    await moved('engine', 'begun_at', 61);
    await until(() => told('engine').length === 1);
  } finally {
    signalAll([pid], 'SIGCONT');
  }
  expect(told('engine')).toEqual([['started', 'The name server does not answer']]);
  await moved('engine', 'clear_since', 121);
  await until(() => events('engine').length === 2);
  expect(events('engine')).toEqual(['started', 'ended']);
}, 90_000);

test('a queue that nobody works on', async () => {
  const made = await observersOf(service).made('https://shop.example.com/', { enabled: false });
  await service.sql(
    `insert into observer_checks (observer_id, region, check_at) values ($1, 'nowhere', now() - interval '6 min')`,
    [made.id],
  );
  await until(() => told('queue').length > 0);
  expect(told('queue')[0]).toEqual(['started', 'The queue of checks does not move']);
  await service.sql(`delete from observer_checks where region = 'nowhere'`);
  await moved('queue', 'clear_since', 61);
  await until(() => events('queue').at(-1) === 'ended');
}, 90_000);

test('memory that is promised beyond the machine', async () => {
  const promise = (mb: number): Promise<unknown> =>
    service.sql(`update releases set processes = jsonb_set(processes, '{web,memory_mb}', to_jsonb($1::int))`, [mb]);
  await promise(50_000_000);
  await moved('memory', 'begun_at', 61);
  await until(() => told('memory').length === 1);
  // A stopped application takes no memory.
  await service.sql(`update applications set status = 'stopped'`);
  await moved('memory', 'clear_since', 61);
  await until(() => events('memory').length === 2);
  await promise(512);
  await service.sql(`update applications set status = 'running'`);
}, 60_000);

test('a clock that is off by more than two seconds', async () => {
  expect(told('clock')).toEqual([]);
  otherClock = 10_000;
  await until(() => told('clock').length === 1);
  expect(told('clock')[0]?.[1]).toMatch(/^The clock of the machine is behind by at least \d+ s$/);
  otherClock = 0;
  await until(() => events('clock').at(-1) === 'ended');
}, 60_000);

test('a newer version that has changes to security, until it is there', async () => {
  const note = (release: object | null): Promise<unknown> =>
    service.sql('update release_notices set release = $1', [release && JSON.stringify(release)]);
  await note({ version: '99.0.0', released_at: '2026-11-28T00:00:00Z', security: 'A hole is closed.', changes: '' });
  await until(() => told('release').length === 1);
  await note(null);
  await until(() => events('release').length === 2);
}, 60_000);

test('background work that fails for ten minutes', async () => {
  let isAway = true;
  const work = repeatWork({ name: 'tape', everyMs: 100 }, () => {
    if (isAway) throw new Error('the tape is full');
  });
  await moved('background', 'begun_at', 601);
  await until(() => told('background').length === 1);
  expect(told('background')).toEqual([['started', 'The background work tape fails']]);
  isAway = false;
  await until(() => events('background').at(-1) === 'ended');
  await work.stop();
}, 60_000);

test('a certificate of the platform that was not renewed', async () => {
  await service.sql(
    `insert into certificates (id, reason, reason_since) values ('platform.example.com', 'It refuses.',
      now() - interval '2 hours')`,
  );
  await until(() => told('certificate').length === 1);
  await service.sql(`delete from certificates where id = 'platform.example.com'`);
  await until(() => events('certificate').at(-1) === 'ended');
}, 60_000);

test('none was told twice, and the heartbeat came', async () => {
  for (const name of ['engine', 'queue', 'memory', 'clock', 'release', 'background', 'certificate'])
    expect([name, events(name)]).toEqual([name, ['started', 'ended']]);
  // The first comes after a minute.
  await until(() => beats > 0, 70_000);
}, 90_000);
