/** @tier heavy @quarter 1 @covers db server/platform/session.ts server/platform/listener.ts core/postgres_url.ts */
// The control database of two servers, one of which follows the other: the leader is killed, or freezes, and the other
// one is promoted. Nothing that was acknowledged is lost, and no process is started again.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { loadConfig } from '../../core/config';
import { createLog } from '../../core/log/log';
import { firstBoot } from '../../server/first_boot';
import { openPlatform, type Platform } from '../../server/platform/platform';
import { startService, type Service } from '../../server/service';
import { libpqTarget } from '../../server/upgrade/libpq_target';
import { freePort } from '../../tools/demo/ports';
import { withLimits } from '../support/contract/limits';
import { signalAll, unprivileged } from '../support/processes/processes';
import { fileNeeds } from '../support/runner/programs';
import { retryCheck, waitFor } from '../support/wait_for';

fileNeeds('pg_basebackup');
// Shorter than in life, so that the test needs not wait as long as a client may.
withLimits({ statementTimeoutMs: 2_000, connectionTimeoutMs: 1_500 });

const VERSIONS = '/usr/lib/postgresql';
const home = mkdtempSync(path.join(tmpdir(), 'platform-failover-'));
const user = unprivileged();
const program = (name: string): string => {
  const newest = readdirSync(VERSIONS).sort((a, b) => Number(a) - Number(b));
  return path.join(VERSIONS, newest.at(-1) as string, 'bin', name);
};
const run = (name: string, ...words: string[]): string =>
  execFileSync(program(name), words, {
    ...user,
    cwd: home,
    env: { LC_ALL: 'C' },
    stdio: ['ignore', 'pipe', 'pipe'],
  }).toString();

interface Server {
  port: number;
  data: string;
  child?: ChildProcess;
}

const servers: Server[] = [];
let first: Server;
let second: Server;
let url: string;
let platform: Platform;
let service: Service;
let key: string;
let project: string;

beforeAll(async () => {
  chmodSync(home, 0o700);
  if (user.uid !== undefined) chownSync(home, user.uid, user.gid as number);
  [first, second] = (await Promise.all(['a', 'b'].map(newServer))) as [Server, Server];
  run('initdb', '-D', first.data, '--auth=trust', '--username=platform', '--no-sync');
  await start(first);
  await follow(second, first);
  // The one that follows stands in front.
  url = `postgresql://platform@127.0.0.1:${second.port},127.0.0.1:${first.port}/postgres`;
  const config = loadConfig({
    ...{ DATABASE_URL: url, PLATFORM_DATA_DIR: path.join(home, 'data'), PORT: '0', ADMIN_PORT: '0', INGRESS_PORT: '0' },
    ...{ NETWORK: 'shared', DNS_PORT: '0', SMTP_PORTS: '0', MX_PORT: '0', REGISTRY_PORT: '0', S3_PORT: '0' },
    ...{ LOG_LEVEL: 'silent', VOLUME_DRIVER: 'directory', SHUTDOWN_GRACE_SECONDS: '1', DATABASE_POOL_SIZE: '4' },
    QUOTAS: '{"notifiers":null}',
  });
  platform = await openPlatform(config, createLog(config.logLevel));
  service = await startService(platform);
  const made = await firstBoot(platform);
  [key, project] = [made?.key as string, made?.project_id as string];
}, 120_000);

afterAll(async () => {
  await service?.close();
  await platform?.close();
  for (const server of servers.filter(({ child }) => child?.exitCode === null && child.signalCode === null))
    signalServer(server, 'SIGKILL');
  await sleep(300);
  rmSync(home, { recursive: true, force: true });
}, 60_000);

async function newServer(name: string): Promise<Server> {
  const server = { port: await freePort(), data: path.join(home, name) };
  servers.push(server);
  return server;
}

async function start(server: Server): Promise<void> {
  const settings = ['fsync=off', 'listen_addresses=127.0.0.1', 'unix_socket_directories=', 'wal_sender_timeout=2s'];
  const words = ['-D', server.data, '-p', String(server.port), ...settings.flatMap((one) => ['-c', one])];
  server.child = spawn(program('postgres'), words, { ...user, cwd: home, stdio: 'ignore' });
  await waitFor(
    'the server',
    () =>
      ask(server, 'select 1').then(
        () => true,
        () => false,
      ),
    30_000,
  );
}

async function ask(server: Server, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ host: '127.0.0.1', port: server.port, user: 'platform', database: 'postgres' });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** A commit is acknowledged when the follower has it too. */
async function follow(server: Server, leader: Server): Promise<void> {
  rmSync(server.data, { recursive: true, force: true });
  const from = ['-h', '127.0.0.1', '-p', String(leader.port), '-U', 'platform'];
  run('pg_basebackup', ...from, '-D', server.data, '-R', '--checkpoint=fast', '--no-sync');
  await start(server);
  await ask(leader, `alter system set synchronous_standby_names = '*'`);
  await ask(leader, 'select pg_reload_conf()');
  const states = (): Promise<unknown> => ask(leader, 'select sync_state from pg_stat_replication');
  await waitFor('the follower', async () => JSON.stringify(await states()).includes('sync"'), 30_000);
}

async function promote(server: Server): Promise<void> {
  await ask(server, `select pg_promote(true)`);
  await ask(server, `alter system set synchronous_standby_names = ''`);
  await ask(server, 'select pg_reload_conf()');
}

async function call(method: string, place: string, body?: object, more: object = {}) {
  const headers = { Authorization: `Bearer ${key}`, 'X-Svc-Project': project, 'Content-Type': 'application/json' };
  const response = await fetch(service.config.baseUrl + place, {
    ...{ method, headers: { ...headers, ...more }, body: body && JSON.stringify(body) },
    signal: AbortSignal.timeout(20_000),
  });
  return { status: response.status, body: JSON.parse(await response.text()) };
}

/** Writes one after the other, each until it is acknowledged. */
function startWrites(prefix: string) {
  const acknowledged: string[] = [];
  const answers = new Set<string>();
  let isStopped = false;
  const write = async (): Promise<void> => {
    for (let number = 1; !isStopped; number += 1) {
      const name = `${prefix}${number}`;
      const body = { name, type: 'webhook', config: { url: 'https://example.com/' } };
      for (let status = 0; status !== 201 && !isStopped; await sleep(20)) {
        const answer = await call('POST', '/v2/notifiers', body, { 'Idempotency-Key': name });
        ({ status } = answer);
        answers.add(`${status} ${answer.body.code}`);
        if (status === 201) acknowledged.push(name);
      }
    }
  };
  const running = write();
  return { acknowledged, answers, stop: () => ((isStopped = true), running) };
}

async function namesOfNotifiers(): Promise<string[]> {
  const names: string[] = [];
  for (let next = '/v2/notifiers?limit=100'; next;) {
    const { body } = await call('GET', next);
    names.push(...body.data.map(({ name }: { name: string }) => name));
    next = body.has_more ? `/v2/notifiers?limit=100&cursor=${body.next_cursor}` : '';
  }
  return names;
}

/** A write whose end nobody knows holds its key until the server of its connection is given up. */
const ANSWERS = ['201 undefined', '503 service_unavailable', '409 idempotency_in_progress'];

/** With its processes for the connections, which go on without it. */
function signalServer({ child }: Server, signal: NodeJS.Signals): void {
  const { pid = 0 } = child ?? {};
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  signalAll([pid, ...children.map(Number)], signal);
}

async function losesItsLeader(leader: Server, follower: Server, end: NodeJS.Signals, prefix: string): Promise<void> {
  const writes = startWrites(prefix);
  await waitFor('writes', () => writes.acknowledged.length >= 20, 30_000);
  signalServer(leader, end);
  await sleep(1_000);
  await promote(follower);
  const [promotedAt, before] = [performance.now(), writes.acknowledged.length];
  await waitFor('a write', () => writes.acknowledged.length > before, 30_000);
  const seconds = (performance.now() - promotedAt) / 1000;
  await waitFor('more writes', () => writes.acknowledged.length >= before + 20, 30_000);
  await writes.stop();
  expect([...writes.answers].filter((answer) => !ANSWERS.includes(answer))).toEqual([]);
  const names = await namesOfNotifiers();
  expect(writes.acknowledged.filter((name) => !names.includes(name))).toEqual([]);
  expect(new Set(names).size).toBe(names.length);
  await retryCheck(async () => {
    const rows = await ask(
      follower,
      `select distinct split_part(application_name, ' ', 2) as name from pg_stat_activity`,
    );
    expect(rows.map(({ name }) => name)).toEqual(expect.arrayContaining(['listener', 'host']));
  }, 30_000);
  // Without the limits of this test a frozen server takes five seconds to be given up.
  expect(seconds).toBeLessThan(end === 'SIGKILL' ? 5 : 15);
}

test('the leader is killed: what was acknowledged is at the other, which is used within seconds', async () => {
  await losesItsLeader(first, second, 'SIGKILL', 'killed');
}, 120_000);

test('the leader freezes, as one whose machine has lost its network', async () => {
  await follow(first, second);
  await losesItsLeader(second, first, 'SIGSTOP', 'frozen');
}, 180_000);

test('where no server takes writes it is said, and a dump is made of the one that does', async () => {
  const hosts = `127.0.0.1:${second.port},127.0.0.1:${first.port}`;
  const parameters = 'target_session_attrs=read-write&connect_timeout=10';
  expect(libpqTarget(url).url).toBe(`postgresql://${hosts}/postgres?${parameters}`);
  run('pg_dump', '--schema-only', '--file=/dev/null', `--dbname=${libpqTarget(url).url}`, '--username=platform');
  signalServer(first, 'SIGKILL');
  const answer = await call('POST', '/v2/notifiers', {
    name: 'x',
    type: 'webhook',
    config: { url: 'https://example.com/' },
  });
  expect([answer.status, answer.body.code]).toEqual([503, 'service_unavailable']);
}, 60_000);

test.each([
  ['an empty name', 'postgresql://a,,b/x'],
  ['servers among the parameters', 'postgresql:///x?host=a,b'],
  ['one that takes no writes', 'postgresql://a,b/x?target_session_attrs=standby'],
  ['a port that is none', 'postgresql://a:1,b:99999/x'],
])('%s is refused', (_, given) => {
  expect(() => loadConfig({ DATABASE_URL: given })).toThrow(/DATABASE_URL/);
});
