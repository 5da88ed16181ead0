/** @tier heavy @quarter 1 @covers server/web_processes server/main.ts */
// Several processes that serve the API on one port: what a client, an operator and a kill see of it.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { limits } from '../../core/limits';
import { type TestDatabase } from '../support/databases/database';
import { processesWith, signalAll } from '../support/processes/processes';
import { storedPassword } from '../support/contract/password';
import { startProgram, type Program } from '../support/processes/program';
import {
  ATTEMPTS,
  base,
  databases,
  doomed,
  first,
  program,
  settingsOf,
  setUpCluster,
  sql,
  WRITES,
} from '../support/deployments/cluster_cases';
import { withinOneMinute } from '../support/processes/within_one_minute';

jest.setTimeout(120_000);

setUpCluster();

async function until(check: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 600 && !(await check()); turn += 1) await sleep(100);
  if (!(await check())) throw new Error(`it does not come to pass\n${program.out().slice(-2000)}`);
}

interface Asked {
  method?: string;
  key?: string | null;
  body?: unknown;
  cookie?: string;
  /** Default: a connection of its own. */
  agent?: http.Agent | false;
}

interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: any; // oxlint-disable-line typescript/no-explicit-any -- whatever the service sends
}

function ask(
  place: string,
  { method = 'GET', key = first.key, body, cookie, agent = false }: Asked = {},
): Promise<Answer> {
  const headers = {
    'X-Svc-Project': first.project_id,
    ...(key && { Authorization: `Bearer ${key}` }),
    ...(cookie && { Cookie: cookie }),
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
  };
  return new Promise((resolve, reject) => {
    const request = http.request(base + place, { method, headers, agent, timeout: 60_000 }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: JSON.parse(Buffer.concat(chunks).toString() || 'null'),
        }),
      );
    });
    request.on('timeout', () => request.destroy(new Error('no answer')));
    request.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

interface Line {
  msg: string;
  web?: number;
  pid?: number;
  request_id?: string;
  admin_port?: number;
  operation?: string;
}

const linesOf = (one: Program): Line[] =>
  one
    .out()
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as Line);

const lines = (): Line[] => linesOf(program);

/** The process that gave an answer, as the log has it. */
async function webOf({ headers }: Answer): Promise<number> {
  const found = (): Line | undefined =>
    lines().find((line) => line.msg === 'request' && line.request_id === headers['x-request-id']);
  await until(() => found() !== undefined);
  return found()?.web as number;
}

const pidsOf = (one: Program): Map<number, number> =>
  new Map(
    linesOf(one)
      .filter(({ msg }) => msg === 'a web process serves')
      .map(({ web, pid }) => [web as number, pid as number]),
  );

const childrenOf = (one: Program): number[] =>
  processesWith('web_processes/web')
    .filter(({ parent }) => parent === one.pid)
    .map(({ pid }) => pid);

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** A connection to each process, kept. */
async function connections(): Promise<Map<number, http.Agent>> {
  const found = new Map<number, http.Agent>();
  for (let turn = 0; turn < 20 && found.size < 2; turn += 1) {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const web = await webOf(await ask('/v2/me', { agent }));
    if (found.has(web)) agent.destroy();
    else found.set(web, agent);
  }
  expect(found.size).toBe(2);
  return found;
}

async function metrics(): Promise<string> {
  const port = lines().find(({ msg }) => msg === 'ready')?.admin_port;
  return (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
}

const countOf = (text: string, name: string): number =>
  Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1] ?? 0);

test('all of them answer, one other does the work, and metrics are their sum', async () => {
  const answers = await Promise.all(Array.from({ length: 12 }, () => ask('/v2/me')));
  expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200));
  const webs = await Promise.all(answers.map(webOf));
  expect(new Set(webs).size).toBe(2);
  const { status, body } = await ask('/v2/volumes', { method: 'POST', body: { name: 'shared', size_gb: 1 } });
  expect(status).toBe(201);
  await until(async () => (await ask(`/v2/volumes/${body.id}`)).body.status === 'available');
  const text = await metrics();
  expect(countOf(text, 'platform_web_processes')).toBe(2);
  expect(countOf(text, 'platform_requests_total\\{operation="getMe",status="200"\\}')).toBe(12);
  expect(countOf(text, 'platform_request_seconds_count\\{operation="getMe"\\}')).toBe(12);
  expect(text).not.toMatch(/null|undefined/);
  expect(childrenOf(program)).toHaveLength(2);
});

test('a session and a revocation hold in all of them', async () => {
  const [user] = (
    await sql.query<{ id: string; email: string }>('update users set password_hash = $1 returning id, email', [
      storedPassword('a long enough password'),
    ])
  ).rows;
  const [[, one], [other, two]] = [...(await connections())] as [[number, http.Agent], [number, http.Agent]];
  const graphql = (agent: http.Agent, query: string, variables: object, cookie?: string): Promise<Answer> =>
    ask('/graphql', { method: 'POST', key: null, body: { query, variables }, cookie, agent });
  const login = await graphql(one, 'mutation ($input: LoginInput!) { login(input: $input) { user { id } } }', {
    input: { email: user?.email, password: 'a long enough password' },
  });
  const cookie = String(login.headers['set-cookie']).split(';')[0];
  const made = await graphql(
    two,
    'mutation ($input: CreatePersonalKeyInput!) { createPersonalKey(input: $input) { key { id } token } }',
    { input: { name: 'CI', scopes: ['read'] } },
    cookie,
  );
  const { key, token } = made.body.data.createPersonalKey;
  for (const agent of [one, two]) expect((await ask('/v2/me', { key: token, agent })).status).toBe(200);
  expect(
    (await graphql(one, 'mutation ($id: ID!) { revokePersonalKey(id: $id) }', { id: key.id }, cookie)).body,
  ).toEqual({ data: { revokePersonalKey: true } });
  const revoked = performance.now();
  expect((await ask('/v2/me', { key: token, agent: one })).status).toBe(401);
  let last = await ask('/v2/me', { key: token, agent: two });
  while (last.status === 200 && performance.now() - revoked < limits.identityCacheMs + 1_000)
    last = await sleep(20).then(() => ask('/v2/me', { key: token, agent: two }));
  expect(last.status).toBe(401);
  expect(await webOf(last)).toBe(other);
  for (const agent of [one, two]) agent.destroy();
});

test('they share the budgets of an account and of an address', async () => {
  await withinOneMinute(10_000);
  const writes = await Promise.all(
    Array.from({ length: WRITES + 20 }, () => ask('/v2/volumes', { method: 'POST', body: {} })),
  );
  const admitted = writes.filter(({ status }) => status === 422).length;
  expect(new Set(writes.map(({ status }) => status))).toEqual(new Set([422, 429]));
  expect(admitted).toBeLessThanOrEqual(WRITES);
  const wrong: number[] = [];
  for (let turn = 0; turn < 2 * ATTEMPTS; turn += 1) {
    wrong.push((await ask('/v2/me', { key: `svc_${'A'.repeat(39)}` })).status);
    await sleep(25);
  }
  // Counted alone they would refuse none of these: each has met half of them.
  expect(wrong.filter((status) => status === 401).length).toBeLessThan(1.5 * ATTEMPTS);
  expect(wrong.pop()).toBe(429);
});

test('one that is killed takes with it what it had in hand, and is replaced', async () => {
  const before = countOf(await metrics(), 'platform_requests_total\\{operation="getMe",status="200"\\}');
  const [pid] = [...pidsOf(program).values()] as [number];
  const WIDTH = 4;
  let answered = 0;
  const failures: string[] = [];
  const run = async (): Promise<void> => {
    while (pidsOf(program).size < 3) {
      await ask('/v2/me').then(
        ({ status }) => (status === 200 ? (answered += 1) : failures.push(`status ${status}`)),
        (error: Error) => failures.push(error.message),
      );
      await sleep(5);
    }
  };
  // A connection that it is handed now, it does not take.
  process.kill(pid, 'SIGSTOP');
  const runs = Array.from({ length: WIDTH }, run);
  await until(() => answered >= 50);
  process.kill(pid, 'SIGKILL');
  await Promise.all(runs);
  expect(failures.length).toBeLessThanOrEqual(WIDTH);
  expect(failures.filter((failure) => !/hang up|ECONNRESET/.test(failure))).toEqual([]);
  expect(isAlive(pid)).toBe(false);
  const text = await metrics();
  expect(countOf(text, 'platform_web_processes')).toBe(2);
  expect(countOf(text, 'platform_requests_total\\{operation="getMe",status="200"\\}')).toBeGreaterThanOrEqual(
    before + answered,
  );
  for (const agent of (await connections()).values()) agent.destroy();
});

test('SIGTERM lets all of them finish, and leaves none', async () => {
  const blocker = new pg.Client({ connectionString: (databases[0] as TestDatabase).url });
  await blocker.connect();
  await blocker.query('begin; lock table activity in access exclusive mode');
  // Two that come to a process at once share a connection, where one waits behind the other.
  const slow = Array.from({ length: 4 }, () => ask(`/v2/projects/${first.project_id}/activity`));
  await until(
    async () =>
      Number(
        (
          await sql.query(
            `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
              and query like '%activity%'`,
          )
        ).rowCount,
      ) >= 2,
  );
  program.signal('SIGTERM');
  await until(() =>
    ask('/healthz').then(
      () => false,
      () => true,
    ),
  );
  await blocker.query('commit');
  await blocker.end();
  expect((await Promise.all(slow)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect([await program.ended, program.err()]).toEqual([0, '']);
  expect([...pidsOf(program).values()].filter(isAlive)).toEqual([]);
});

test('processes that end again and again end the service, with one line', async () => {
  let over = false;
  void doomed.ended.then(() => (over = true));
  await until(() => {
    signalAll(childrenOf(doomed));
    return over;
  });
  expect([await doomed.ended, doomed.err()]).toEqual([
    1,
    expect.stringMatching(/^platform-api: web processes end again and again: SIGKILL\n$/),
  ]);
});

test('kill -9 of the first process leaves none, also while they start', async () => {
  const orphaned = startProgram({ ...(await settingsOf('orphaned')), WORKER: 'separate' });
  await until(() => childrenOf(orphaned).length === 2);
  const pids = childrenOf(orphaned);
  orphaned.signal('SIGKILL');
  await orphaned.ended;
  await until(() => pids.filter(isAlive).length === 0);
});
