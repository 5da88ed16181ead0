/** @tier heavy @quarter 4 @covers db server/platform/expiring_cache.ts */
// The database goes away in the middle: killed, stopped, frozen, locked. Requests get 503 in time, and all comes back
// by itself.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { limits } from '../../core/limits';
import { loadConfig } from '../../core/config';
import { createLog } from '../../core/log/log';
import { sha256 } from '../../core/accounts/tokens';
import { openEmbedded, type Embedded } from '../../server/platform/embedded';
import { firstBoot } from '../../server/first_boot';
import { openPlatform, type Platform } from '../../server/platform/platform';
import { startService, type Service } from '../../server/service';
import { withLimits } from '../support/contract/limits';
import { processesWith, signalAll } from '../support/processes/processes';

// Shorter than in life, so that the test needs not wait as long as a client may.
withLimits({ statementTimeoutMs: 1_000, connectionTimeoutMs: 1_500 });
const ANSWER_MS = 4_000;

const home = mkdtempSync(path.join(tmpdir(), 'platform-outage-'));
chmodSync(home, 0o755);
const engines: Embedded[] = [];
let url: string;
let platform: Platform;
let service: Service;
let key: string;
let project: string;

/** The server of this test alone. It listens where it did before. */
async function startEngine(): Promise<string> {
  const port = url ? ['-p', new URL(url).port] : [];
  const engine = await openEmbedded({
    dataDir: home,
    flags: ['-c', 'fsync=off', '-c', 'deadlock_timeout=600ms', ...port],
  });
  engines.push(engine);
  return engine.url;
}

beforeAll(async () => {
  url = await startEngine();
  const settings = {
    DATABASE_URL: url,
    PLATFORM_DATA_DIR: home,
    PORT: '0',
    ADMIN_PORT: '0',
    INGRESS_PORT: '0',
    NETWORK: 'shared',
    ...{ DNS_PORT: '0', SMTP_PORTS: '0', MX_PORT: '0', REGISTRY_PORT: '0', S3_PORT: '0' },
    LOG_LEVEL: 'silent',
    VOLUME_DRIVER: 'directory',
    SHUTDOWN_GRACE_SECONDS: '1',
    DATABASE_POOL_SIZE: '4',
  };
  const config = { ...loadConfig(settings), ingressProcess: 'in_process' as const };
  platform = await openPlatform(config, createLog(config.logLevel));
  service = await startService(platform);
  const first = await firstBoot(platform);
  [key, project] = [first?.key as string, first?.project_id as string];
}, 60_000);

afterAll(async () => {
  await service?.close();
  await platform?.close();
  for (const engine of engines) await engine.close();
  rmSync(home, { recursive: true, force: true });
}, 60_000);

interface Answer {
  status: number;
  headers: Headers;
  body: {
    code?: string;
    id?: string;
    status?: string;
    reasons?: string[];
    errors?: { extensions: { code: string } }[];
    data?: { id: string }[];
  };
  ms: number;
}

async function call(method: string, place: string, body?: object, token = key): Promise<Answer> {
  const begun = performance.now();
  const headers = { Authorization: `Bearer ${token}`, 'X-Svc-Project': project, 'Content-Type': 'application/json' };
  const response = await fetch(service.config.baseUrl + place, {
    method,
    headers,
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(20_000),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text ? JSON.parse(text) : {},
    ms: performance.now() - begun,
  };
}

const list = (): Promise<Answer> => call('GET', '/v2/volumes');
const query = (): Promise<Answer> => call('POST', '/graphql', { query: '{ listVolumes { data { id } } }' });
let serial = 0;
const create = (): Promise<Answer> => call('POST', '/v2/volumes', { name: `outage-${(serial += 1)}`, size_gb: 1 });

function expectUnavailable(answer: Answer): void {
  expect([answer.status, answer.body.code ?? answer.body.errors?.[0]?.extensions.code]).toEqual([
    503,
    'service_unavailable',
  ]);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(answer.ms).toBeLessThan(ANSWER_MS);
}

async function until(what: string, check: () => Promise<boolean>, withinMs = 15_000): Promise<void> {
  for (const end = performance.now() + withinMs; !(await check()); await sleep(50)) {
    if (performance.now() > end) throw new Error(`waited in vain: ${what}`);
  }
}

async function connect(): Promise<pg.Client> {
  const sql = new pg.Client({ connectionString: url });
  sql.on('error', () => {});
  await sql.connect();
  return sql;
}

async function expectAway(): Promise<void> {
  // Twice: with what the caches know, and without.
  for (const answer of await Promise.all([list(), create(), query()])) expectUnavailable(answer);
  await sleep(limits.identityCacheMs);
  for (const answer of await Promise.all([list(), create(), query(), call('GET', '/v2/me')])) expectUnavailable(answer);
  const [ready, health] = await Promise.all([call('GET', '/readyz'), call('GET', '/healthz')]);
  expect([ready.status, ready.body.reasons, health.status]).toEqual([503, ['the database does not answer'], 200]);
  expect(ready.ms).toBeLessThan(ANSWER_MS);
}

/** Requests, the loop, and NOTIFY: all without a restart. */
async function expectBack(): Promise<void> {
  await until('an answer', async () => (await list()).status === 200);
  await until('ready', async () => (await call('GET', '/readyz')).status === 200);
  const made = await create();
  expect(made.status).toBe(201);
  await until(
    'the loop makes the volume',
    async () => (await call('GET', `/v2/volumes/${made.body.id}`)).body.status === 'available',
  );
  expect((await query()).body.errors).toBeUndefined();
  await until('NOTIFY is heard', notificationArrives);
}

/** A key that is revoked by another process stops long before the cache would have forgotten it. */
async function notificationArrives(): Promise<boolean> {
  const sql = await connect();
  try {
    const { rows } = await sql.query<{ id: string }>(
      `update api_keys set revoked_at = null where hash = $1 returning id`,
      [sha256(key)],
    );
    await until('the key works', async () => (await list()).status === 200);
    await sql.query('update api_keys set revoked_at = now() where hash = $1', [sha256(key)]);
    await sql.query(`select pg_notify('forget', $1)`, [JSON.stringify({ key_id: rows[0]?.id })]);
    await sleep(300);
    const heard = (await list()).status === 401;
    await sql.query('update api_keys set revoked_at = null where hash = $1', [sha256(key)]);
    await until('the key works again', async () => (await list()).status === 200);
    return heard;
  } finally {
    await sql.end();
  }
}

const postgres = (): number[] =>
  processesWith(path.join(home, 'postgres'))
    .filter(({ args }) => /^\S+\/bin\/postgres /.test(args))
    .map(({ pid }) => pid);

/** The server and all its backends. */
function family(): number[] {
  const [root] = postgres();
  return [
    root as number,
    ...processesWith('postgres')
      .filter(({ parent }) => parent === root)
      .map(({ pid }) => pid),
  ];
}

test('all connections are cut and new ones refused for a while', async () => {
  await expectBack();
  const sql = await connect();
  const open = [list(), create(), query()];
  await sql.query('update pg_database set datallowconn = false where datname = current_database()');
  await sql.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = $1',
    ['client backend'],
  );
  for (const { status } of await Promise.all(open)) expect([200, 201, 503]).toContain(status);
  await expectAway();
  await sql.query('update pg_database set datallowconn = true where datname = current_database()');
  await sql.end();
  await expectBack();
}, 60_000);

test('the server is killed and started again', async () => {
  signalAll(family());
  await expectAway();
  await until('the dead are gone', async () => postgres().length === 0);
  await startEngine();
  await expectBack();
}, 60_000);

test('the server is frozen: connections are there, and nothing answers', async () => {
  await Promise.all([list(), list(), list(), list()]);
  const frozen = family();
  expect(frozen.length).toBeGreaterThan(5);
  signalAll(frozen, 'SIGSTOP');
  try {
    await expectAway();
  } finally {
    signalAll(frozen, 'SIGCONT');
  }
  await expectBack();
}, 60_000);

test('a query that is blocked by a lock ends with 503', async () => {
  const sql = await connect();
  await sql.query('begin; lock table volumes in access exclusive mode');
  const answers = await Promise.all([list(), create(), query()]);
  await sql.query('rollback');
  await sql.end();
  for (const answer of answers) expectUnavailable(answer);
  await expectBack();
}, 60_000);

test('deadlocks are no errors of the client nor of the server', async () => {
  const ids: string[] = [];
  for (let turn = 0; turn < 2; turn += 1) ids.push((await create()).body.id as string);
  // Else the loop would meet the trigger too.
  for (const id of ids)
    await until('the loop is done', async () => (await call('GET', `/v2/volumes/${id}`)).body.status === 'available');
  const sql = await connect();
  // This session holds the second row and then wants the first, which a request holds that waits for the second.
  await sql.query(`set deadlock_timeout = '10s'`);
  await sql.query(`create function wait_for_other() returns trigger language plpgsql as $$ begin
    if new.id = '${ids[0]}' then perform 1 from volumes
      where id = '${ids[1]}' for update; end if; return null; end $$`);
  await sql.query('create trigger deadlock after update on volumes for each row execute function wait_for_other()');
  await sql.query(`begin; select 1 from volumes where id = '${ids[1]}' for update`);
  const change = call('PATCH', `/v2/volumes/${ids[0]}`, { name: 'dead-locked' });
  await until(
    'the request waits',
    async () => (await sql.query(`select from pg_stat_activity where wait_event_type = 'Lock'`)).rowCount === 1,
  );
  const mine = sql.query(`select 1 from volumes where id = '${ids[0]}' for update`);
  await mine.catch(() => {});
  await sql.query('rollback');
  const answer = await change;
  await sql.query('drop trigger deadlock on volumes; drop function wait_for_other');
  await sql.end();
  // Tried once more by the service itself.
  expect([answer.status, answer.body]).toMatchObject([200, { name: 'dead-locked' }]);
}, 60_000);
