/** @tier heavy @quarter 4 @covers jobs/deployments/deployment jobs/applications/instance */
// The control plane is killed while deployments are at every stage, and started again: each goes on where it was, what
// runs runs on, and nothing is done twice.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { createTestDatabase } from '../../support/databases/database';
import { destroyUnits, leftOvers, visitHost } from '../../support/deployments/deploy';
import { startGitServer, type GitServer } from '../../support/git/git_server';
import { endPrograms, startProgram, type Program } from '../../support/processes/program';
import { nodeApp, procfileApp, webCommand } from '../../support/git/repositories';
import { waitFor } from '../../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers of the program as it is */
let git: GitServer;
let database: Awaited<ReturnType<typeof createTestDatabase>>;
let directory: string;
let sql: Client;
let program: Program;
let base: string;
let key: { key: string; project_id: string };

async function startAgain(): Promise<void> {
  program = startProgram({
    DATABASE_URL: database.url,
    PLATFORM_DATA_DIR: directory,
    INGRESS_PORT: String(ingressPort),
    LOG_LEVEL: 'info',
    ALLOW_HTTP_GIT: '1',
    ALLOW_PRIVATE_ADDRESSES: '1',
    BUILD_CONCURRENCY: '8',
    SHUTDOWN_GRACE_SECONDS: '2',
  });
  base = await program.ready();
  key = JSON.parse(readFileSync(path.join(directory, 'first-key.json'), 'utf8'));
}

const ingressPort = 18_000 + (process.pid % 1000);

async function call(method: string, place: string, body?: unknown): Promise<any> {
  const headers: Record<string, string> = {
    Authorization: `Bearer ${key.key}`,
    'X-Svc-Project': key.project_id,
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
  };
  const response = await fetch(`${base}${place}`, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status >= 300) throw new Error(`${method} ${place}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

beforeAll(async () => {
  git = await startGitServer();
  database = await createTestDatabase();
  directory = mkdtempSync(path.join(tmpdir(), 'platform-kill-'));
  sql = new Client({ connectionString: database.url });
  await sql.connect();
  await startAgain();
}, 60_000);

afterAll(async () => {
  await endPrograms();
  await destroyUnits(path.join(directory, 'runtime'));
  await sql.end();
  await git.close();
  await database.drop();
  rmSync(directory, { recursive: true, force: true });
}, 60_000);

interface Made {
  id: string;
  name: string;
  host: string;
  deployment: string;
}

async function make(name: string, files: object, settings: object = {}): Promise<Made> {
  git.makeRepository(name, files as never);
  const { id, default_hostname: host } = await call('POST', '/v2/applications', {
    name,
    source: { type: 'git', repository_url: git.url(name) },
  });
  await call('PATCH', `/v2/applications/${id}/settings`, {
    health_check: { grace_period_seconds: 20 },
    run: { shutdown_grace_seconds: 4 },
    ...settings,
  });
  return { id, name, host, deployment: '' };
}

const deploy = async (made: Made): Promise<void> =>
  void (made.deployment = (await call('POST', `/v2/applications/${made.id}/deployments`, {})).id);
const statusOf = async ({ id, deployment }: Made): Promise<string> =>
  (await call('GET', `/v2/applications/${id}/deployments/${deployment}`)).status;
const linesOf = async ({ id, deployment }: Made): Promise<string[]> =>
  (await call('GET', `/v2/applications/${id}/deployments/${deployment}/logs?order=asc&limit=1000`)).data.map(
    ({ message }: { message: string }) => message,
  );
const reaches = (made: Made, wanted: string): Promise<unknown> =>
  waitFor(`${made.name} is ${wanted}`, async () => (await statusOf(made)) === wanted, 40_000);
const visit = (made: Made, place = '/'): ReturnType<typeof visitHost> => visitHost(ingressPort, made.host, place);

const PID =
  "require('http').createServer((q, a) => a.end(String(process.pid) + ' ' + " +
  "process.env.SVC_INSTANCE_ID)).listen(process.env.PORT, '127.0.0.1');";
const built = (seconds: number) => ({
  ...nodeApp('built'),
  'package.json': JSON.stringify({
    name: 'app',
    version: '1.0.0',
    scripts: { build: `echo begin of build; sleep ${seconds}; echo end of build`, start: 'node server.js' },
  }),
});

/** What the ingress answers while something is done, from the moment on at which it listens. */
async function statusesWhile(made: Made, work: () => Promise<void>): Promise<number[]> {
  const statuses: number[] = [];
  let isOver = false;
  const asking = (async () => {
    while (!isOver || statuses.at(-1) !== 200) {
      await visit(made).then(
        ({ status }) => statuses.push(status),
        () => undefined,
      );
      await sleep(5);
    }
  })();
  await work();
  isOver = true;
  await asking;
  return statuses;
}

test('killed while one is fetched, one built, one released, one started, one runs and one stops', async () => {
  const running = await make('running', webCommand('node a.js', { 'a.js': PID }));
  const stopping = await make(
    'stopping',
    webCommand('node a.js', { 'a.js': `process.on('SIGTERM', () => {}); ${PID}` }),
  );
  await Promise.all([running, stopping].map(deploy));
  await Promise.all([reaches(running, 'active'), reaches(stopping, 'active')]);
  const [fetched, building, releasing, starting] = await Promise.all([
    make('fetched', nodeApp('fetched')),
    make('building', built(6)),
    make('releasing', procfileApp('r', 'echo begin of release; sleep 6; echo done > released.txt')),
    make('starting', webCommand('sh -c "sleep 6; node a.js"', { 'a.js': PID })),
  ]);
  await Promise.all([building, releasing, starting].map(deploy));
  await Promise.all([
    waitFor('the build', async () => (await linesOf(building)).includes('begin of build')),
    waitFor('the release', async () => (await linesOf(releasing)).includes('begin of release')),
    reaches(starting, 'deploying'),
  ]);
  await deploy(fetched);
  git.intercept = (request) => (request.url?.includes('/fetched.git') ? 'hang' : null);
  await reaches(fetched, 'building');
  const before = (await visit(running)).body;
  await call('POST', `/v2/applications/${stopping.id}/stop`);
  await waitFor(
    'it stops',
    async () =>
      (await sql.query(`select 1 from instances where application_id = $1 and status = 'stopping'`, [stopping.id])).rows
        .length > 0,
  );

  program.signal('SIGKILL');
  await program.ended;
  git.intercept = null;
  const statuses = await statusesWhile(running, startAgain);
  // It runs on: who asks before the routes are read from the database is served, or asked to come again.
  expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
  expect(statuses.at(-1)).toBe(200);

  await Promise.all([fetched, building, releasing, starting].map((made) => reaches(made, 'active')));
  await waitFor('stopped', async () => (await call('GET', `/v2/applications/${stopping.id}`)).status === 'stopped');
  // After such an end the health of what runs is found out anew.
  const answers = (made: typeof fetched, body: string) => waitFor(body, async () => (await visit(made)).body === body);
  await answers(fetched, 'fetched');
  await answers(building, 'built');
  await answers(releasing, 'r released');
  expect((await visit(starting)).status).toBe(200);
  // The same process as before: it was adopted.
  expect((await visit(running)).body).toBe(before);
  expect((await linesOf(building)).filter((line) => line === 'begin of build')).toHaveLength(1);
  expect((await linesOf(releasing)).filter((line) => line === 'begin of release')).toHaveLength(1);
  const { rows } = await sql.query<{ application_id: string; count: string }>(
    'select application_id, count(*) from instances group by 1',
  );
  expect(rows.every(({ count }) => Number(count) === 1)).toBe(true);
}, 120_000);

test('killed while it deletes: what was begun is ended, and orphans are removed', async () => {
  const { data } = await call('GET', '/v2/applications?limit=100');
  for (const { id } of data) await call('DELETE', `/v2/applications/${id}`);
  program.signal('SIGKILL');
  await program.ended;
  await startAgain();
  await waitFor('no rows', async () => (await sql.query('select 1 from applications')).rows.length === 0, 40_000);
  await waitFor('nothing on the host', async () => leftOvers(path.join(directory, 'runtime')).length === 0);
  program.signal('SIGTERM');
  expect(await program.ended).toBe(0);
}, 90_000);
