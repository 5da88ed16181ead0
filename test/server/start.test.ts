/** @tier heavy @quarter 3 @covers server/main.ts server/first_boot.ts server/program.ts server/platform core/config */
// The program as a newcomer and an operator meet it: first start, second start, kill -9, stop, and every way not to
// start.
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, statSync, existsSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { loadConfig } from '../../core/config';
import { limits } from '../../core/limits';
import { settings } from '../../core/settings';
import { hostFacts } from '../../drivers/host';
import { firstBootText, type FirstKey } from '../../server/first_boot';
import { freePort } from '../support/processes/free_port';
import { processesWith } from '../support/processes/processes';
import { startProgram } from '../support/processes/program';
import { needs } from '../support/runner/programs';
import { database, directory, setUpStarts, until } from '../support/processes/start_cases';

jest.setTimeout(240_000);
setUpStarts();

const readFirstKey = (dir: string): FirstKey => JSON.parse(readFileSync(path.join(dir, 'first-key.json'), 'utf8'));

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

/** Whether it is the API that answers, and not the port that says that it starts. */
async function answers(port: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}/v2/projects`).catch(() => null);
  return response !== null && response.status !== 503;
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
  expect(Object.keys(file).sort()).toEqual(['base_url', 'key', 'project_id', 'setup_url']);
  expect(statSync(path.join(dir, 'first-key.json')).mode & 0o777).toBe(0o600);
  expect(file.base_url).toBe(base);
  await until(() => first.out().includes('curl'));
  const text = first.out();
  // A file or a collector of logs keeps what it gets: the key goes to terminals only.
  expect(text).not.toContain(file.key);
  expect(file.setup_url).toMatch(new RegExp(`^${base}/welcome#fst_[\\w-]{40,}$`));
  expect(text).not.toContain(file.setup_url);
  const onTerminal = firstBootText(file, await hostFacts({ directory: dir }), loadConfig({}), 'terminal');
  expect(onTerminal.split(`key           ${file.key}\n`)).toHaveLength(2);
  for (const value of [
    `key           ${dir}/first-key.json\n`,
    `project       ${file.project_id}\n`,
    `dashboard     ${base}/\n`,
  ])
    expect(text.split(value)).toHaveLength(2);

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
});

needs('bash', 'curl').test('the commands that the first start shows deploy an application', async () => {
  const program = startProgram({ PLATFORM_DATA_DIR: directory('shown') });
  await program.ready();
  await until(() => program.out().includes('/deployments '));
  const examples = program
    .out()
    .split('\n')
    .filter((line) => /^ {2}(curl |ID=|KEY=)/.test(line));
  expect(examples).toHaveLength(5);
  const { stdout } = await promisify(execFile)('bash', ['-ec', examples.join('\n')]);
  expect(stdout).toContain('"status":"active"');
  expect(stdout).toContain('"status":"running"');
  program.signal('SIGTERM');
  await program.ended;
});

test('the first key is in its file before the API answers', async () => {
  const dir = directory('early');
  const port = await freePort();
  const program = startProgram({ PLATFORM_DATA_DIR: dir, PORT: String(port) });
  await until(() => answers(port));
  expect(readFirstKey(dir).base_url).toBe(`http://127.0.0.1:${port}`);
  await program.ready();
  program.signal('SIGTERM');
  await program.ended;
});

test('a first start whose port is taken makes no key', async () => {
  const dir = directory('taken');
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as AddressInfo;
  const api = String(await freePort());
  const refused = startProgram({ PLATFORM_DATA_DIR: dir, PORT: api, ADMIN_PORT: String(port) });
  expect([await refused.ended, refused.err()]).toEqual([
    1,
    `platform-api: can't listen on 127.0.0.1:${port} (ADMIN_PORT): the port is taken\n`,
  ]);
  expect(existsSync(path.join(dir, 'first-key.json'))).toBe(false);
  await new Promise((resolve) => other.close(resolve));
  const second = startProgram({ PLATFORM_DATA_DIR: dir });
  const base = await second.ready();
  expect((await get(base, '/v2/me', readFirstKey(dir).key)).status).toBe(200);
  second.signal('SIGTERM');
  await second.ended;
});

test('two first starts at once agree on one key, and nothing embedded starts beside DATABASE_URL', async () => {
  const url = await database(true);
  const places = [directory('one'), directory('two')];
  const secret = Buffer.alloc(32, 7).toString('base64');
  // One of them alone could have the applications.
  const given = { DATABASE_URL: url, PLATFORM_SECRET_KEY: secret, WORKER: 'separate' };
  const both = places.map((dir) => startProgram({ ...given, PLATFORM_DATA_DIR: dir }));
  const bases = await Promise.all(both.map((program) => program.ready()));
  // The welcome follows the last line of the log.
  await until(() => both.some((program) => program.out().includes('Welcome')));
  const told = both.filter((program) => program.out().includes('Welcome'));
  expect(told).toHaveLength(1);
  // The other one may have written another address for setting up the owner.
  const written = places.filter((dir) => existsSync(path.join(dir, 'first-key.json')) && readFirstKey(dir).key);
  expect(written).toHaveLength(1);
  const { key } = readFirstKey(written[0] as string);
  for (const base of bases) expect((await get(base, '/v2/me', key)).status).toBe(200);
  for (const dir of places) expect([existsSync(path.join(dir, 'postgres')), processesWith(dir)]).toEqual([false, []]);
  for (const program of both) program.signal('SIGTERM');
  expect(await Promise.all(both.map(({ ended }) => ended))).toEqual([0, 0]);
});

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
});

test('the log names a setting that was removed, and doctor does', async () => {
  const dir = directory('removed');
  const given = { PLATFORM_DATA_DIR: dir, DATABASE_URL: await database(false), INGRESS_PROCESS: 'in_process' };
  const program = startProgram(given);
  await program.ready();
  expect(program.out()).toContain('INGRESS_PROCESS is not a setting any more');
  const doctor = startProgram(given, { entry: 'server/operator/main.ts', words: ['doctor', '--json'] });
  await doctor.ended;
  const { data } = JSON.parse(doctor.out()) as { data: { check: string; status: string; detail: string }[] };
  expect(data[0]).toMatchObject({ check: 'settings', status: 'warning' });
  expect(data[0]?.detail).toContain('INGRESS_PROCESS');
  program.signal('SIGTERM');
  expect(await program.ended).toBe(0);
});

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
});

test('--help lists every setting', async () => {
  const help = startProgram({}, { words: ['--help'] });
  expect([await help.ended, help.err()]).toEqual([0, '']);
  for (const [name, { description }] of Object.entries(settings)) {
    expect(help.out()).toContain(name);
    expect(help.out()).toContain(description);
  }
});
