// The program as a newcomer and an operator meet it: first start, second start, kill -9, stop, and every way not to
// start.
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, existsSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { limits } from '../core/limits';
import { settings } from '../core/settings';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from './support/database';
import { processesWith, unprivileged } from './support/processes';
import { endPrograms, startProgram } from './support/program';

const home = mkdtempSync(path.join(tmpdir(), 'platform-start-'));
chmodSync(home, 0o755);
const databases: TestDatabase[] = [];

afterAll(async () => {
  await endPrograms();
  for (const database of databases) await database.drop();
  await until(() => processesWith(`${home}/`).length === 0);
  rmSync(home, { recursive: true, force: true });
});

async function until(check: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 300 && !(await check()); turn += 1) await sleep(50);
}

async function database(empty: boolean): Promise<string> {
  const made = empty ? await createEmptyDatabase() : await createTestDatabase();
  databases.push(made);
  return made.url;
}

const directory = (name: string): string => path.join(home, name);
const readFirstKey = (dir: string): { key: string; project_id: string; base_url: string } =>
  JSON.parse(readFileSync(path.join(dir, 'first-key.json'), 'utf8'));

async function get(
  base: string,
  place: string,
  key: string,
  project?: string,
): Promise<{ status: number; body: { id: string; name: string; status: string; data: { name: string }[] } }> {
  const response = await fetch(base + place, {
    headers: { Authorization: `Bearer ${key}`, ...(project && { 'X-Svc-Project': project }) },
  });
  return { status: response.status, body: (await response.json()) as never };
}

async function postVolume(
  base: string,
  { key, project_id }: { key: string; project_id: string },
  name: string,
): Promise<string> {
  const headers = { Authorization: `Bearer ${key}`, 'X-Svc-Project': project_id, 'Content-Type': 'application/json' };
  const response = await fetch(`${base}/v2/volumes`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ name, size_gb: 1 }),
  });
  expect(response.status).toBe(201);
  return ((await response.json()) as { id: string }).id;
}

test('first start, kill -9, second start, stop: with the embedded database', async () => {
  const dir = directory('newcomer');
  const first = startProgram({ PLATFORM_DATA_DIR: dir });
  const base = await first.ready();
  const file = readFirstKey(dir);
  expect(Object.keys(file).sort()).toEqual(['base_url', 'key', 'project_id']);
  expect(statSync(path.join(dir, 'first-key.json')).mode & 0o777).toBe(0o600);
  expect(file.base_url).toBe(base);
  const text = first.out();
  for (const value of [`key      ${file.key}`, `project  ${file.project_id}`, `address  ${base}`])
    expect(text.split(value)).toHaveLength(2);

  const curls = text.split('\n').filter((line) => line.trim().startsWith('curl '));
  expect(curls.length).toBeGreaterThanOrEqual(2);
  for (const line of curls) {
    const { stdout } = await promisify(execFile)('bash', ['-c', `${line.trim()} -sS -w '\\n%{http_code}'`]);
    expect(stdout.trim().split('\n').pop()).toBe('200');
  }
  await postVolume(base, file, 'kept');
  first.signal('SIGKILL');
  await first.ended;

  const second = startProgram({ PLATFORM_DATA_DIR: dir });
  const address = await second.ready();
  const { body } = await get(address, '/v2/volumes', file.key, file.project_id);
  expect(body.data.map(({ name }) => name)).toEqual(['kept']);
  expect(second.out()).not.toContain(file.key);
  expect(second.out()).not.toContain('Welcome');

  const postmaster = Number(readFileSync(path.join(dir, 'postgres/data-18/postmaster.pid'), 'utf8').split('\n')[0]);
  process.kill(postmaster, 'SIGKILL');
  await until(() => second.out().includes('the database server had ended and was started again'));
  await until(async () => (await get(address, '/v2/volumes', file.key, file.project_id)).status === 200);
  await postVolume(address, file, 'after');
  second.signal('SIGINT');
  expect([await second.ended, second.err()]).toEqual([0, '']);
  await until(() => processesWith(path.join(dir, 'postgres')).length === 0);
  expect(processesWith(path.join(dir, 'postgres'))).toEqual([]);
}, 60_000);

test('two first starts at once agree on one key, and nothing embedded starts beside DATABASE_URL', async () => {
  const url = await database(true);
  const places = [directory('one'), directory('two')];
  const secret = Buffer.alloc(32, 7).toString('base64');
  const both = places.map((dir) =>
    startProgram({ DATABASE_URL: url, PLATFORM_DATA_DIR: dir, PLATFORM_SECRET_KEY: secret }),
  );
  const bases = await Promise.all(both.map((program) => program.ready()));
  const told = both.filter((program) => program.out().includes('Welcome'));
  expect(told).toHaveLength(1);
  const written = places.filter((dir) => existsSync(path.join(dir, 'first-key.json')));
  expect(written).toHaveLength(1);
  const { key } = readFirstKey(written[0] as string);
  for (const base of bases) expect((await get(base, '/v2/me', key)).status).toBe(200);
  for (const dir of places) expect([existsSync(path.join(dir, 'postgres')), processesWith(dir)]).toEqual([false, []]);
  for (const program of both) program.signal('SIGTERM');
  expect(await Promise.all(both.map(({ ended }) => ended))).toEqual([0, 0]);
}, 60_000);

test('a key that can not be written down is not made', async () => {
  const dir = directory('blocked');
  mkdirSync(path.join(dir, 'first-key.json', 'in-the-way'), { recursive: true });
  const given = { DATABASE_URL: await database(true), PLATFORM_DATA_DIR: dir, WORKER: 'separate' };
  const first = startProgram(given);
  expect([await first.ended, first.err()]).toEqual([
    1,
    expect.stringMatching(/^platform-api: can't write [^\n]*first-key\.json: \w+\n$/),
  ]);
  expect(first.out()).not.toContain('Welcome');
  rmSync(path.join(dir, 'first-key.json'), { recursive: true });
  const second = startProgram(given);
  const base = await second.ready();
  expect((await get(base, '/v2/me', readFirstKey(dir).key)).status).toBe(200);
  second.signal('SIGTERM');
  expect(await second.ended).toBe(0);
});

test('a stopping process answers what is open, takes nothing new, and ends with 0', async () => {
  const url = await database(false);
  const program = startProgram({ DATABASE_URL: url, PLATFORM_DATA_DIR: directory('drain'), WORKER: 'separate' });
  const base = await program.ready();
  const { key, project_id } = readFirstKey(directory('drain'));
  const blocker = new pg.Client({ connectionString: url });
  await blocker.connect();
  await blocker.query('begin; lock table volumes in access exclusive mode');
  const slow = get(base, '/v2/volumes', key, project_id);
  await until(
    async () =>
      (
        await blocker.query(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        )
      ).rowCount === 1,
  );
  program.signal('SIGTERM');
  await until(async () =>
    fetch(`${base}/healthz`).then(
      () => false,
      () => true,
    ),
  );
  await expect(fetch(`${base}/healthz`)).rejects.toThrow();
  const released = performance.now();
  await blocker.query('commit');
  await blocker.end();
  expect((await slow).status).toBe(200);
  expect([await program.ended, program.err()]).toEqual([0, '']);
  // Far below the grace time: the client's idle connection is not waited for.
  expect(performance.now() - released).toBeLessThan(15_000);
  expect(program.out()).toMatch(/"msg":"stopped"/);
}, 60_000);

test('it can be stopped while it starts', async () => {
  const silent = createServer();
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as AddressInfo;
  const program = startProgram({
    DATABASE_URL: `postgres://nobody@127.0.0.1:${port}/x`,
    PLATFORM_DATA_DIR: directory('early'),
  });
  await new Promise<void>((resolve) =>
    silent.once('connection', (socket) => (socket.on('error', () => {}).resume(), resolve())),
  );
  program.signal('SIGTERM');
  const begun = performance.now();
  expect([await program.ended, program.err()]).toEqual([0, '']);
  expect(performance.now() - begun).toBeLessThan(limits.connectionTimeoutMs);
  await new Promise((resolve) => silent.close(resolve));
});

test('a worker of its own does the work of an API that has none', async () => {
  const dir = directory('separate');
  const common = { DATABASE_URL: await database(false), PLATFORM_DATA_DIR: dir };
  const api = startProgram({ ...common, WORKER: 'separate' });
  const base = await api.ready();
  const first = readFirstKey(dir);
  const id = await postVolume(base, first, 'waits');
  await sleep(1_500);
  expect((await get(base, `/v2/volumes/${id}`, first.key, first.project_id)).body.status).toBe('provisioning');
  const worker = startProgram(common, { entry: 'server/worker.ts' });
  await worker.ready();
  const status = async (): Promise<string> =>
    (await get(base, `/v2/volumes/${id}`, first.key, first.project_id)).body.status;
  await until(async () => (await status()) === 'available');
  expect(await status()).toBe('available');
  for (const program of [worker, api]) program.signal('SIGTERM');
  expect(await Promise.all([worker.ended, api.ended])).toEqual([0, 0]);
}, 60_000);

test('--help lists every setting', async () => {
  const help = startProgram({}, { words: ['--help'] });
  expect([await help.ended, help.err()]).toEqual([0, '']);
  for (const [name, { description }] of Object.entries(settings)) {
    expect(help.out()).toContain(name);
    expect(help.out()).toContain(description);
  }
});

describe('what keeps it from starting: one line, exit code 1', () => {
  const ROLE = `stranger_${process.pid}`;
  let url: string;
  let empty: string;
  let port: number;
  const holder = createServer();

  beforeAll(async () => {
    [url, empty] = [await database(false), await database(true)];
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
    port = (holder.address() as AddressInfo).port;
  });
  afterAll(async () => {
    await ask(empty, `drop role if exists ${ROLE}`);
    await new Promise((resolve) => holder.close(resolve));
  });

  async function newer(): Promise<string> {
    const made = await database(false);
    await ask(
      made,
      `insert into knex_migrations (name, batch, migration_time) values ('9999_from_the_future', 99, now())`,
    );
    return made;
  }

  async function ask(database: string, text: string): Promise<void> {
    const client = new pg.Client({ connectionString: database });
    await client.connect();
    await client.query(text).finally(() => client.end());
  }

  /** Somebody who may connect and nothing else. */
  async function stranger(): Promise<string> {
    await ask(empty, `create role ${ROLE} login password 'pw-of-someone'`);
    return Object.assign(new URL(empty), { username: ROLE, password: 'pw-of-someone' }).href;
  }

  const nowhere = '/proc/platform';
  const cases: [string, RegExp, () => Promise<Record<string, string>> | Record<string, string>, string[]?][] = [
    ['a taken port', /PORT|listen on 127.0.0.1:\d+.*port is taken/, () => ({ PORT: String(port) })],
    ['a taken admin port', /ADMIN_PORT.*port is taken/, () => ({ ADMIN_PORT: String(port) })],
    ['an address of another machine', /192\.0\.2\.1.*not one of this machine/, () => ({ HOST: '192.0.2.1' })],
    ['a directory that can not be made', /\/proc\/platform/, () => ({ PLATFORM_DATA_DIR: nowhere })],
    [
      'a directory that can not be made, for the embedded database',
      /\/proc\/platform/,
      () => ({ DATABASE_URL: '', PLATFORM_DATA_DIR: nowhere }),
    ],
    [
      'a database that is not there',
      /database does not answer: .*ECONNREFUSED/,
      () => ({ DATABASE_URL: 'postgres://someone:pw-of-someone@127.0.0.1:1/x' }),
    ],
    [
      'a name that nobody has',
      /database does not answer: .*nowhere\.invalid/,
      () => ({ DATABASE_URL: 'postgres://someone:pw-of-someone@nowhere.invalid/x' }),
    ],
    [
      'a wrong password',
      /does not answer: password authentication failed/,
      () => ({ DATABASE_URL: Object.assign(new URL(url), { password: 'pw-of-someone' }).href }),
    ],
    [
      'a user without rights',
      /can not be brought up to date: .*permission denied/,
      async () => ({ DATABASE_URL: await stranger() }),
    ],
    [
      'a database that nobody made',
      /does not answer: database "nothing" does not exist/,
      () => ({ DATABASE_URL: Object.assign(new URL(url), { pathname: '/nothing' }).href }),
    ],
    ['a newer schema', /newer than this program.*9999_from_the_future/, async () => ({ DATABASE_URL: await newer() })],
    ['a malformed setting', /DATABASE_POOL_SIZE is malformed: "many"/, () => ({ DATABASE_POOL_SIZE: 'many' })],
    ['a malformed secret', /PLATFORM_SECRET_KEY is malformed/, () => ({ PLATFORM_SECRET_KEY: 'pw-of-someone' })],
    ['an unknown setting', /PLATFORM_DATADIR is not a setting/, () => ({ PLATFORM_DATADIR: '/x' })],
    ['a folder for volumes that can not be made', /\/proc\/platform/, () => ({ VOLUME_DIR: nowhere })],
    ['an unknown argument', /--port/, () => ({}), ['--port']],
  ];

  test.each(cases)('%s', async (...[name, line, given, words = []]) => {
    const program = startProgram(
      { DATABASE_URL: url, PLATFORM_DATA_DIR: directory(`refused-${name.replace(/\W/g, '')}`), ...(await given()) },
      { words },
    );
    expect([await program.ended, program.err()]).toEqual([1, expect.stringMatching(/^platform-api: [^\n]+\n$/)]);
    expect(program.err()).toMatch(line);
    expect(program.err() + program.out()).not.toContain('pw-of-someone');
    expect(program.out()).not.toContain('Welcome');
  });

  test('a volume driver that can not work here', async () => {
    const dir = mkdtempSync(path.join(home, 'plain-'));
    chmodSync(dir, 0o777);
    // Nobody may mount.
    const program = startProgram(
      { DATABASE_URL: url, PLATFORM_DATA_DIR: dir, VOLUME_DRIVER: 'loop_image' },
      { user: unprivileged() },
    );
    expect([await program.ended, program.err()]).toEqual([
      1,
      expect.stringMatching(/^platform-api: [^\n]*loop_image[^\n]+\n$/),
    ]);
  });

  test('a directory that is not ours', async () => {
    const closed = mkdtempSync(path.join(home, 'closed-'));
    chmodSync(closed, 0o555);
    const program = startProgram(
      { DATABASE_URL: url, PLATFORM_DATA_DIR: path.join(closed, 'data') },
      { user: unprivileged() },
    );
    expect([await program.ended, program.err()]).toEqual([
      1,
      expect.stringMatching(/^platform-api: [^\n]*closed-[^\n]+\n$/),
    ]);
  });
});
