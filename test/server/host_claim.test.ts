/** @tier heavy @quarter 3 @covers server/platform/host_claim.ts server/start_worker.ts */
// Several processes that could run the applications of an installation: one does, whatever becomes of it.
import { mkdtempSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createTestDatabase } from '../support/databases/database';
import { endPrograms, startProgram, type Program } from '../support/processes/program';
import { waitFor } from '../support/wait_for';

const TAKES_MS = 30_000;
const STANDS_BY = '"msg":"another process runs the applications; standing by"';
const END_SESSIONS = `select pg_terminate_backend(pid) from pg_stat_activity
  where application_name like 'platform host%' and datname = current_database()`;
const TAKEN_OVER = '"msg":"another process has taken over the applications"';

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let client: pg.Client;
const directories: string[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
}, 60_000);
afterAll(async () => {
  await endPrograms();
  await client.end();
  await database.drop();
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
}, 60_000);

/** As on another machine: its directory and its ports are its own. */
function start(entry: 'server/main.ts' | 'server/worker.ts'): Program {
  const directory = mkdtempSync(path.join(tmpdir(), 'host-claim-'));
  directories.push(directory);
  return startProgram(
    { DATABASE_URL: database.url, PLATFORM_DATA_DIR: directory, LOG_LEVEL: 'info', SHUTDOWN_GRACE_SECONDS: '1' },
    { entry },
  );
}

/** Process ids of those that have the applications, or try to. */
async function claimants(): Promise<number[]> {
  const text = `select a.application_name as name from pg_stat_activity a join pg_locks l on l.pid = a.pid
    where l.locktype = 'advisory' and a.application_name like 'platform host %' and l.granted
      and a.datname = current_database()`;
  const { rows } = await client.query<{ name: string }>(text);
  return rows.map(({ name }) => Number(name.split(' ').at(-1)));
}

const heldBy = (program: Program): Promise<unknown> =>
  waitFor('the applications', async () => (await claimants()).join() === String(program.pid), TAKES_MS);

test('a second one stands by or is refused, and takes over from one that is killed, stopped, or cut off', async () => {
  const first = start('server/main.ts');
  await first.ready();
  await heldBy(first);

  const refused = start('server/main.ts');
  expect(await refused.ended).toBe(1);
  expect(refused.err() + refused.out()).toContain(
    `another process runs the applications of this installation: ${hostname()}, process ${first.pid}. Stop it first, ` +
      'or set WORKER=separate here',
  );

  const second = start('server/worker.ts');
  await second.ready();
  expect(second.out()).toContain(STANDS_BY);
  first.signal('SIGKILL');
  await heldBy(second);

  const third = start('server/worker.ts');
  await third.ready();
  expect(third.out()).toContain(STANDS_BY);
  second.signal('SIGSTOP');
  await client.query(END_SESSIONS);
  await heldBy(third);
  second.signal('SIGCONT');
  await waitFor('the loss', () => Promise.resolve(second.out().includes(TAKEN_OVER)), TAKES_MS);
  // It stands by again, and takes over in turn.
  third.signal('SIGTERM');
  expect(await third.ended).toBe(0);
  await heldBy(second);
}, 180_000);

test('one whose session ends, and that nobody replaces, goes on', async () => {
  const [holder] = await claimants();
  for (let turn = 1; turn <= 3; turn += 1) {
    await client.query(END_SESSIONS);
    await sleep(300);
    await waitFor('the applications', async () => (await claimants()).join() === String(holder), TAKES_MS);
  }
}, 60_000);
