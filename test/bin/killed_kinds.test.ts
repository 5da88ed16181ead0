/** @tier heavy @quarter 1 @covers models/bin models/base/bin.ts models/base/purge.ts jobs/step.ts */
// kill -9 in the middle of a deletion, a restore and a purge, over kinds with data: of the process that is asked,
// before its last write, and of the host that stops, moves and starts what is behind. Then all is deleted or back, and
// equal.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { named } from '../../db/statement';
import { binCalls } from '../support/bin_calls';
import { connect, openDatabaseWorkshop, refusal } from '../support/databases/database_hall';
import { destroyUnits, makeApplication, type TestApplication } from '../support/deployments/deploy';
import { startGitServer, type GitServer } from '../support/git/git_server';
import { freePort } from '../support/processes/free_port';
import { endPrograms, startProgram, type Program } from '../support/processes/program';
import { startService, type TestService } from '../support/service';
import { waitFor } from '../support/wait_for';

jest.setTimeout(400_000);

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
const place = openDatabaseWorkshop();
let service: TestService;
let git: GitServer;
let host: Program;
let settings: Record<string, string>;
let app: TestApplication;
const ids: Record<'application' | 'database' | 'volume' | 'bucket', string> = {} as never;
const bin = binCalls(() => service);

const SERVER = `require('http').createServer((q, s) => s.end(process.env.GREETING)).listen(process.env.PORT)`;
const FILES = { 'package.json': '{"scripts":{"start":"node server.js"}}', 'server.js': SERVER };

async function startHost(): Promise<void> {
  host = startProgram({ ...settings, PORT: String(await freePort()) });
  await host.ready();
}

async function killHost(): Promise<void> {
  host.signal('SIGKILL');
  await host.ended;
}

async function make(target: string, body: object): Promise<any> {
  const made = await service.call('POST', target, { body });
  if (made.status !== 201) throw new Error(made.text);
  return made.body;
}

const places = (): string[] => [
  ...[`/v2/applications/${ids.application}`, `/v2/databases/${ids.database}`],
  ...[`/v2/volumes/${ids.volume}`, `/v2/buckets/${ids.bucket}`],
];
const addressOf = async (): Promise<string> =>
  (await service.call('GET', `/v2/databases/${ids.database}/credentials`)).body.endpoints[0].connection_string;
const filesOf = (): string => path.join(service.dataDir, 'volumes', ids.volume, 'data', 'a.bin');

beforeAll(async () => {
  const ports = { S3_PORT: String(await freePort()), INGRESS_PORT: String(await freePort()) };
  const shared = {
    ...{ ...place.settings, ...ports, RETENTION_OF_DELETED_DAYS: '7' },
    ...{ ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1' },
  };
  git = await startGitServer();
  service = await startService({ settings: shared });
  const { config } = service.platform;
  settings = {
    ...shared,
    ...{ DATABASE_URL: config.databaseUrl as string, PLATFORM_DATA_DIR: service.dataDir, BASE_URL: service.url },
  };
  await startHost();
  const workplace = { git, call: service.call, platform: { config: { ingressPort: Number(ports.INGRESS_PORT) } } };
  app = await makeApplication(workplace, FILES, {});
  ids.application = app.id;
  await service.call('PUT', `/v2/applications/${app.id}/env/GREETING`, { body: { value: 'hello' } });
  await app.deploy();
  ids.database = (await make('/v2/databases', { name: 'main', engine: 'postgresql' })).id;
  ids.volume = (await make('/v2/volumes', { name: 'files', size_gb: 1 })).id;
  ids.bucket = (await make('/v2/buckets', { name: `kept-${app.host.split('.')[0]}` })).id;
  await make('/v2/bucket_access_keys', { name: 'shop', grants: [{ bucket_id: ids.bucket, permission: 'read' }] });
  for (const target of places().slice(1, 3))
    await waitFor(target, async () => (await service.call('GET', target)).body.status === 'available', 90_000);
  writeFileSync(filesOf(), Buffer.alloc(100_000, 7));
  await connect(await addressOf(), async (client) => {
    await client.query('create table notes as select n, md5(n::text) from generate_series(1, 1000) n');
  });
}, 240_000);
afterAll(async () => {
  await endPrograms();
  if (service) await destroyUnits(path.join(service.dataDir, 'runtime'));
  await service?.close();
  await git?.close();
  place.clear();
}, 60_000);

/** What people have of the four. */
async function state(): Promise<unknown> {
  let rows: unknown;
  const address = await addressOf().catch(() => null);
  if (address)
    await connect(address, async (client) => {
      rows = (await client.query('select count(*)::int, md5(string_agg(md5, n::text)) from notes')).rows;
    }).catch((error: Error) => void (rows = error.message));
  const shown: unknown[] = [];
  for (const target of places()) {
    const { id, name, status } = (await service.call('GET', target)).body;
    shown.push({ id, name, status });
  }
  const page = await app.visit().catch(({ message }: Error) => ({ status: 0, body: message }));
  const key = (await service.call('GET', '/v2/bucket_access_keys')).body.data[0].grants;
  return { address, rows, shown, page: page.body, file: existsSync(filesOf()) && readFileSync(filesOf()).length, key };
}

const untilState = (expected: unknown): Promise<unknown> =>
  waitFor(
    'all is as it was',
    async () => (JSON.stringify(await state()) === JSON.stringify(expected) ? true : null),
    90_000,
  );

test('a host that is killed while it stops, starts and removes', async () => {
  const before = await state();
  expect(before).toMatchObject({ page: 'hello', file: 100_000 });
  const address = await addressOf();
  for (const ms of [0, 200, 700, 2_000]) {
    const entries: any[] = [];
    for (const target of places()) entries.push(await bin.deleted(target));
    await sleep(ms);
    await killHost();
    await startHost();
    await waitFor(
      'nothing runs',
      async () => (await app.visit().catch(() => ({ status: 404 }))).status === 404,
      60_000,
    );
    await waitFor(
      'the server is stopped',
      async () => (await refusal(address).catch(() => '')).includes('ECONNREFUSED'),
      60_000,
    );
    expect(existsSync(filesOf())).toBe(true);
    for (const entry of entries) expect(await bin.restored(entry)).toEqual([]);
    await sleep(ms);
    await killHost();
    await startHost();
    await untilState(before);
  }
});

/** Its transactions wait before their last write, the entry of the activity. */
const HELD = 424_242;
const HOLD = [
  `create function hold_test() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock(${HELD}); return new; end $$`,
  'create trigger hold_test before insert on activity for each row execute function hold_test()',
];

/** Asks a process of its own, which is killed before its last write. */
async function killAtEnd(method: string, target: string): Promise<void> {
  const port = String(await freePort());
  const program = startProgram({ ...settings, PORT: port, INGRESS_PORT: '0', WORKER: 'separate' });
  await program.ready();
  await service.platform.database.transaction(async (session) => {
    await session.query(named(`select pg_advisory_xact_lock(${HELD})`), []);
    const headers = { Authorization: `Bearer ${service.key}`, 'X-Svc-Project': service.project };
    const sent = fetch(`http://127.0.0.1:${port}${target}`, { method, headers }).catch(() => null);
    await waitFor('it waits', async () => {
      const [{ waiting }] = await service.sql(
        `select count(*)::int as waiting from pg_locks where locktype = 'advisory' and objid = ${HELD} and not granted`,
      );
      return waiting > 0;
    });
    program.signal('SIGKILL');
    await program.ended;
    expect(await sent).toBeNull();
  });
  // What it had sent is done or rolled back by now: whoever locks the rows waits for that.
  await waitFor('it has ended', async () => {
    const [{ open }] = await service.sql(
      `select count(*)::int as open from pg_locks where relation = 'deleted_resources'::regclass and mode like 'Row%'`,
    );
    return open === 0;
  });
}

test('a process that is killed before its last write, of a deletion, a restore and a purge', async () => {
  const before = await state();
  for (const statement of HOLD) await service.sql(statement);
  const isThere = async (target: string): Promise<boolean> => (await service.call('GET', target)).status === 200;
  for (const target of places()) {
    const id = path.basename(target);
    await killAtEnd('DELETE', target);
    // One of both, never none and never the two.
    expect([target, await isThere(target)]).toEqual([target, !(await bin.entryOf(id))]);
    const entry = (await bin.entryOf(id)) ?? (await bin.deleted(target));
    await killAtEnd('POST', `/v2/bin/${entry.id}/restore`);
    const kept = await bin.entryOf(id);
    expect([target, await isThere(target)]).toEqual([target, !kept]);
    if (kept) expect(await bin.restored(kept)).toEqual([]);
  }
  await untilState(before);
  for (const target of [...places()].reverse()) {
    const id = path.basename(target);
    const entry = await bin.deleted(target);
    await killAtEnd('DELETE', `/v2/bin/${entry.id}`);
    const kept = await bin.entryOf(id);
    if (kept) expect((await bin.purge(kept)).status).toBe(204);
    await killHost();
    await startHost();
    const table = `${target.split('/')[2]}`;
    await waitFor(
      'its row goes',
      async () => !(await service.sql(`select 1 from ${table} where id = $1`, [id])).length,
      90_000,
    );
  }
  expect([existsSync(filesOf()), existsSync(path.join(place.databaseDir, ids.database))]).toEqual([false, false]);
});
