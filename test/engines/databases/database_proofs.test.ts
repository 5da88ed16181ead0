/** @tier heavy @quarter 3 @covers jobs/databases/database_proof.ts drivers/hosted_server/restored_rows.ts */
// Backups that are proven: one of each engine is, one that is spoiled is told of within one run, and nothing is left of
// a proof on the host.
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { createClient } from '@redis/client';
import { createConnection } from 'mysql2/promise';
import {
  connect,
  hasEngine,
  hasPostgresqlTools,
  openHall,
  testWhere,
  type Hall,
} from '../../support/databases/database_hall';
import { processesWith } from '../../support/processes/processes';
import { waitFor } from '../../support/wait_for';

jest.setTimeout(300_000);

/* oxlint-disable typescript/no-explicit-any -- the OpenAPI check types what the service sends */
let hall: Hall;
beforeAll(async () => void (hall = await openHall()), 60_000);
afterAll(() => hall?.close(), 60_000);

const addressOf = async (id: string): Promise<string> =>
  (await hall.call('GET', `/v2/databases/${id}/credentials`)).body.endpoints[0].connection_string;
const sql = async (id: string, ...statements: string[]): Promise<void> =>
  connect(await addressOf(id), async (client) => {
    for (const statement of statements) await client.query(statement);
  });

async function takeBackup(id: string): Promise<any> {
  const asked = await hall.call('POST', `/v2/databases/${id}/backups`, { body: {} });
  expect(asked.status).toBe(201);
  const made = await waitFor(
    'the backup',
    async () => {
      const { body } = await hall.call('GET', `/v2/databases/${id}/backups/${asked.body.id}`);
      return ['completed', 'failed'].includes(body.status) ? body : null;
    },
    60_000,
  );
  expect(made).toMatchObject({ status: 'completed', proof_status: 'unproven', proven_at: null, proof_failure: null });
  return made;
}

/** The task of the next look does not wait for its time. */
const look = (): Promise<unknown> =>
  hall.service.sql(`update schedules set next_at = now() where id = 'prove_backups' and lease_until is null`);

async function outcome(id: string, backup: string, statuses = ['proven', 'failed']): Promise<any> {
  return waitFor(
    'the proof',
    async () => {
      await look();
      const { body } = await hall.call('GET', `/v2/databases/${id}/backups/${backup}`);
      return statuses.includes(body.proof_status) ? body : null;
    },
    120_000,
  );
}

async function prove(id: string, backup: string): Promise<any> {
  const asked = await hall.call('POST', `/v2/databases/${id}/backups/${backup}/prove`);
  expect([asked.status, asked.body.proof_status]).toEqual([202, 'waiting']);
  return outcome(id, backup);
}

/** Neither a directory, nor a process, nor a unit, nor a port. */
async function nothingLeft(): Promise<void> {
  await waitFor('the end of the proof', async () =>
    (await hall.service.sql('select 1 from database_proofs')).length ? null : true,
  );
  const left = readdirSync(hall.databaseDir).filter((name) => name.includes('prf_'));
  const units = readdirSync(path.join(hall.service.platform.config.runtimeDir, 'units'));
  expect([left, units.filter((name) => name.includes('prf_')), processesWith(`${hall.databaseDir}/prf_`)]).toEqual([
    [],
    [],
    [],
  ]);
  expect(await hall.service.sql(`select 1 from database_ports where owner_id like 'prf%'`)).toEqual([]);
}

const directoryOf = (id: string, backup: string): string => path.join(hall.databaseDir, 'backups', id, backup);

/** Changes one byte in the middle of a file, runs the work, and puts the byte back. */
async function withSpoiled<T>(file: string, work: () => Promise<T>): Promise<T> {
  const whole = readFileSync(file);
  const spoiled = Buffer.from(whole);
  const middle = Math.floor(spoiled.length / 2);
  spoiled[middle] = (spoiled[middle] as number) ^ 0x55;
  writeFileSync(file, spoiled);
  return work().finally(() => writeFileSync(file, whole));
}

async function withCut<T>(file: string, work: () => Promise<T>): Promise<T> {
  const whole = readFileSync(file);
  truncateSync(file, Math.floor(whole.length / 2));
  return work().finally(() => writeFileSync(file, whole));
}

async function without<T>(file: string, work: () => Promise<T>): Promise<T> {
  const whole = readFileSync(file);
  rmSync(file);
  return work().finally(() => writeFileSync(file, whole));
}

/** Spoiled in each way, each is told; put back, it is proven again. */
async function tellsOfSpoiled(id: string, backup: string, files: readonly string[]): Promise<void> {
  for (const name of files) {
    const file = path.join(directoryOf(id, backup), name);
    for (const spoil of [withSpoiled, withCut, without]) {
      const told = await spoil(file, () => prove(id, backup));
      expect([name, spoil.name, told]).toEqual([
        name,
        spoil.name,
        expect.objectContaining({
          proof_status: 'failed',
          proven_at: null,
          proof_failure: expect.stringMatching(/\.$/),
        }),
      ]);
      if (process.env.SHOW_FAILURES) console.log(name, spoil.name, told.proof_failure);
    }
  }
  await nothingLeft();
  expect(await prove(id, backup)).toMatchObject({ proof_status: 'proven', proof_failure: null });
}

const withPostgresql = testWhere(hasPostgresqlTools(), 'postgresql with its tools not installed');
const withMariadb = testWhere(hasEngine('mariadb'), 'mariadb not installed');
const withRedis = testWhere(hasEngine('redis'), 'redis not installed');

describe('PostgreSQL', () => {
  let id: string;
  let backup: any;

  withPostgresql('the newest backup of a database is proven without a request', async () => {
    ({ id } = await hall.create({ name: 'notes', engine: 'postgresql' }));
    await sql(
      id,
      'create table notes (id int primary key, content text)',
      `insert into notes select n, repeat(md5(n::text), 40) from generate_series(1, 2000) n`,
      'create unlogged table scratch (id int)',
      'insert into scratch values (1)',
      'create view recent as select * from notes where id > 1000',
    );
    backup = await takeBackup(id);
    const proven = await outcome(id, backup.id);
    expect(proven).toMatchObject({ proof_status: 'proven', proof_failure: null, proof_rows: 2000 });
    expect([Date.now() - Date.parse(proven.proven_at) < 60_000, proven.proof_seconds >= 1]).toEqual([true, true]);
    expect((await hall.call('GET', `/v2/databases/${id}`)).body.recovery_seconds).toBe(proven.proof_seconds);
    await nothingLeft();
  });

  withPostgresql('one that is spoiled is told of', async () => {
    await tellsOfSpoiled(id, backup.id, ['base/base.tar.gz', 'base/pg_wal.tar.gz', 'dump']);
    const { body } = await hall.call('GET', `/v2/projects/${hall.service.project}/activity?resource_id=${backup.id}`);
    expect(body.data.map(({ action }: { action: string }) => action)).toContain('database_backup.proof_failed');
  });

  withPostgresql('a page that was damaged before the backup was packed is told of', async () => {
    const base = path.join(directoryOf(id, backup.id), 'base/base.tar.gz');
    const whole = readFileSync(base);
    const tar = gunzipSync(whole);
    // A row of the table, in the middle of its pages.
    const at = tar.indexOf('a9b7ba70783b617e9998dc4dd82eb3c5');
    expect(at).toBeGreaterThan(0);
    tar[at + 3] = (tar[at + 3] as number) ^ 1;
    writeFileSync(base, gzipSync(tar, { level: 1 }));
    const told = await prove(id, backup.id).finally(() => writeFileSync(base, whole));
    expect(told).toMatchObject({
      ...{ proof_status: 'failed', proof_failure: expect.stringMatching(/table public.notes of the restored data is/) },
    });
  });

  withPostgresql('where there is no room it waits, and says so', async () => {
    const size = (bytes: number) =>
      hall.service.sql('update database_backups set size_bytes = $2, proof_due_at = null where id = $1', [
        ...[backup.id, bytes],
      ]);
    await size(10 ** 15);
    await hall.call('POST', `/v2/databases/${id}/backups/${backup.id}/prove`);
    const waits = await waitFor('the look', async () => {
      await look();
      const { body } = await hall.call('GET', `/v2/databases/${id}/backups/${backup.id}`);
      return body.proof_failure === null ? null : body;
    });
    expect(waits).toMatchObject({
      proof_status: 'waiting',
      proof_failure: expect.stringMatching(/^The proof needs \d+\.\d GB on the disk .* It is tried again\.$/),
    });
    await nothingLeft();
    await size(1_000_000);
    expect(await outcome(id, backup.id)).toMatchObject({ proof_status: 'proven' });
  });

  withPostgresql('its processes give way to all others', async () => {
    await hall.call('POST', `/v2/databases/${id}/backups/${backup.id}/prove`);
    const nice = await waitFor(
      'a server',
      async () => {
        await look();
        // With `-C` it only reads its configuration.
        const [server] = processesWith(`${hall.databaseDir}/prf_`).filter(({ args }) =>
          /^\S*\/postgres (?!-C)/.test(args),
        );
        return server ? Number(readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[16]) : null;
      },
      60_000,
    );
    expect(nice).toBeGreaterThanOrEqual(10);
    await outcome(id, backup.id);
  });

  withPostgresql('an assertion of the owner has to hold', async () => {
    const assert = (proof_assertion: string | null) =>
      hall.call('PATCH', `/v2/databases/${id}`, { body: { proof_assertion } });
    expect((await assert('select count(*) = 2000 from notes')).body.proof_assertion).toMatch(/2000/);
    expect(await prove(id, backup.id)).toMatchObject({ proof_status: 'proven' });
    for (const [query, failure] of [
      ['select count(*) > 2000 from notes', /returned false, not true/],
      ['select true from notes', /returned 2000 rows, not true/],
      ['select nothing', /could not be run: column "nothing" does not exist/],
      ['select true; drop table notes', /could not be run: cannot insert multiple commands/],
      ['delete from notes returning true', /could not be run: cannot execute DELETE in a read-only transaction/],
      ["select pg_read_file('PG_VERSION') is not null", /could not be run: permission denied/],
    ] as const) {
      await assert(query);
      expect([query, await prove(id, backup.id)]).toEqual([
        query,
        expect.objectContaining({ proof_status: 'failed', proof_failure: expect.stringMatching(failure) }),
      ]);
    }
    await assert(null);
  });
});

describe('MariaDB', () => {
  withMariadb('a backup is proven, and one that is spoiled is told of', async () => {
    const { id } = await hall.create({ name: 'shop', engine: 'mariadb' });
    const url = new URL(await addressOf(id));
    const client = await createConnection({
      ...{ host: url.hostname, port: Number(url.port), user: url.username, database: url.pathname.slice(1) },
      ...{ password: decodeURIComponent(url.password), ssl: { rejectUnauthorized: false } },
    });
    for (const statement of [
      'create table orders (id int primary key auto_increment, note text)',
      `insert into orders (note) select repeat(concat('a\n(', seq), 20) from seq_1_to_3000`,
      'create table history (id int primary key) with system versioning',
      'insert into history values (1), (2)',
      'delete from history where id = 1',
      'create sequence numbers',
      'select nextval(numbers)',
      'create view many as select * from orders where id > 10',
      'create trigger doubled before insert on orders for each row set new.note = upper(new.note)',
    ])
      await client.query(statement);
    await client.end();
    const backup = await takeBackup(id);
    expect(await prove(id, backup.id)).toMatchObject({ proof_status: 'proven', proof_rows: 3002, proof_failure: null });
    await nothingLeft();
    await hall.call('PATCH', `/v2/databases/${id}`, { body: { proof_assertion: 'select count(*) = 3 from orders' } });
    expect(await prove(id, backup.id)).toMatchObject({
      ...{ proof_status: 'failed', proof_failure: expect.stringMatching(/`proof_assertion` returned 0, not true/) },
    });
    await hall.call('PATCH', `/v2/databases/${id}`, {
      body: { proof_assertion: 'select count(*) = 3000 from orders' },
    });
    await tellsOfSpoiled(id, backup.id, ['dump.sql.gz']);
  });
});

describe('Redis', () => {
  withRedis('a backup is proven, and one that is spoiled is told of', async () => {
    const { id } = await hall.create({ name: 'cache', engine: 'redis' });
    const client = createClient({ url: await addressOf(id), socket: { tls: true, rejectUnauthorized: false } as any });
    await client.connect();
    for (let key = 0; key < 800; key += 1) await client.set(`key-${key}`, `value-${key}-`.repeat(20));
    await client.set('passing', 'one', { EX: 3_600 });
    await client.close();
    const backup = await takeBackup(id);
    expect(await prove(id, backup.id)).toMatchObject({ proof_status: 'proven', proof_rows: 801, proof_failure: null });
    expect((await hall.call('PATCH', `/v2/databases/${id}`, { body: { proof_assertion: 'select 1' } })).body.code).toBe(
      'engine_feature_unsupported',
    );
    await tellsOfSpoiled(id, backup.id, ['dump.rdb']);
    expect(existsSync(directoryOf(id, backup.id))).toBe(true);
  });
});
