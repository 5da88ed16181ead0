/** @tier heavy @quarter 3 @covers server/worker.ts server/start_worker.ts */
/** @user any */
// npm run worker: the process as an operator meets it.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openWorkshop, until, type Workshop } from '../support/runner/workshop';

const REGISTER = path.resolve(__dirname, '../support/runner/typescript.js');
const ENTRY = path.resolve(__dirname, '../../server/worker.ts');

interface Running {
  ended: Promise<number | null>;
  kill(signal: NodeJS.Signals): void;
  out(): string;
}

let workshop: Workshop;
const dataDir = mkdtempSync(path.join(tmpdir(), 'platform-api-worker-'));
const running: Running[] = [];

beforeAll(async () => (workshop = await openWorkshop()));
afterAll(async () => {
  for (const worker of running) worker.kill('SIGKILL');
  await Promise.all(running.map(({ ended }) => ended));
  await workshop.close();
  rmSync(dataDir, { recursive: true, force: true });
});

function start(words: string[] = [], settings: Record<string, string> = {}): Running {
  const env = {
    PATH: process.env.PATH,
    DATABASE_URL: workshop.url,
    PLATFORM_DATA_DIR: dataDir,
    VOLUME_DRIVER: 'directory',
    ...settings,
  };
  const child = spawn(process.execPath, ['--require', REGISTER, ENTRY, ...words], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (out += text.toString()));
  const ended = new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)));
  const worker = { ended, kill: (signal: NodeJS.Signals) => void child.kill(signal), out: () => out };
  running.push(worker);
  return worker;
}

test('it makes volumes until it is told to stop, and ends with 0', async () => {
  const worker = start();
  const [id = ''] = await workshop.addVolumes(1);
  await until(
    'the volume is available',
    async () => (await workshop.row<{ status: string }>('volumes', id))?.status === 'available',
    45_000,
  );
  expect(existsSync(path.join(dataDir, 'volumes', id, 'data'))).toBe(true);
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe(0);
  expect(await workshop.rows('select 1 from volumes where lease_owner is not null')).toEqual([]);
});

/** What it prints beside the lines of its log. */
const logLines = (worker: ReturnType<typeof start>): string[] =>
  worker
    .out()
    .trim()
    .split('\n')
    .filter((line) => !line.startsWith('{'));

test('a driver that cannot work here is one line and exit code 1', async () => {
  rmSync(path.join(dataDir, 'volumes'), { recursive: true, force: true });
  writeFileSync(path.join(dataDir, 'volumes'), '');
  const worker = start();
  expect(await worker.ended).toBe(1);
  expect(logLines(worker)).toEqual([
    expect.stringMatching(/^platform-api: the volume driver directory cannot work here: /),
  ]);
});

test('an unknown argument and a newer schema stop it with one line each', async () => {
  const worker = start(['--fast']);
  expect(await worker.ended).toBe(1);
  expect(worker.out()).toMatch(/^platform-api: unknown argument --fast; .*\n$/);
  await workshop.rows(
    `insert into knex_migrations (name, batch, migration_time) values ('9999_contract_9998_x', 99, now())`,
  );
  const older = start();
  expect(await older.ended).toBe(1);
  expect(logLines(older)).toEqual([
    expect.stringMatching(/^platform-api: the database schema is newer than this program supports: /),
  ]);
});
