/** @tier heavy @quarter 3 @covers jobs/databases/database_import.ts drivers/database/imports */
// Imports whose control plane is killed with -9: each goes on or fails with a sentence, is never completed with a part
// of its data, and leaves no file, no session and no slot.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import pg from 'pg';
import { createClient } from '@redis/client';
import {
  describePostgresqlWithTools,
  hasEngine,
  openDatabaseWorkshop,
  testWhere,
  type DatabaseWorkshop,
} from '../../support/databases/database_hall';
import { startFollowedSource, startWriter, type FollowedSource } from '../../support/databases/followed_source';
import { startPlant, type Plant } from '../../support/processes/bad_days_program';
import { processesWith, signalAll } from '../../support/processes/processes';
import { waitFor } from '../../support/wait_for';

const PATIENCE_MS = 120_000;
const ROWS = 30_000;
jest.setTimeout(600_000);

/* oxlint-disable typescript/no-explicit-any -- answers of all kinds */
describePostgresqlWithTools(() => {
  let place: DatabaseWorkshop;
  let plant: Plant;

  beforeAll(async () => {
    place = openDatabaseWorkshop();
    plant = await startPlant(place.settings);
  }, PATIENCE_MS);
  afterAll(async () => {
    await plant?.close();
    signalAll(processesWith(`${place.databaseDir}/`).map(({ pid }) => pid));
    place.clear();
  }, PATIENCE_MS);

  interface Target {
    id: string;
    port: number;
    password: string;
    place: string;
  }
  let made = 0;

  async function create(engine: string): Promise<Target> {
    const version = engine === 'postgresql' ? { engine_version: '15' } : {};
    const body = { name: `target${(made += 1)}`, engine, ...version };
    const { id } = (await plant.call('POST', '/v2/databases', { body })).body;
    await waitFor(
      'the database',
      async () => (await plant.call('GET', `/v2/databases/${id}`)).body.status === 'available',
      PATIENCE_MS,
    );
    const { body: found } = await plant.call('GET', `/v2/databases/${id}/credentials`);
    return { id, port: found.endpoints[0].port, password: found.password, place: `/v2/databases/${id}/imports` };
  }
  const get = async ({ place: at }: Target, id: string): Promise<any> => (await plant.call('GET', `${at}/${id}`)).body;
  const ended = (to: Target, id: string): Promise<any> =>
    waitFor(
      'the end of the import',
      async () => {
        const one = await get(to, id);
        return ['completed', 'failed', 'canceled'].includes(one.status) ? one : null;
      },
      PATIENCE_MS,
    );
  const isRunning = (to: Target, id: string) =>
    waitFor('a running import', async () => (await get(to, id)).status === 'running', PATIENCE_MS);

  async function send(to: Target, content: string | Uint8Array): Promise<string> {
    const { id, upload_url } = (await plant.call('POST', to.place, { body: { source: { upload: true } } })).body;
    const { pathname, search } = new URL(upload_url);
    const answer = await fetch(plant.access().url + pathname + search, { method: 'PUT', body: content as BodyInit });
    expect(answer.status).toBe(200);
    return id;
  }
  async function killAndStart(): Promise<void> {
    await plant.kill();
    await plant.start();
  }
  const nothingLeft = () =>
    waitFor(
      'no files of imports',
      async () => {
        const root = path.join(place.databaseDir, 'imports');
        const files = existsSync(root) ? readdirSync(root) : [];
        const conf = readdirSync(place.databaseDir).filter((name) =>
          existsSync(path.join(place.databaseDir, name, 'conf/import.cnf')),
        );
        return files.length + conf.length === 0 ? true : null;
      },
      PATIENCE_MS,
    );

  describe('postgresql', () => {
    let to: Target;
    beforeAll(async () => {
      to = await create('postgresql');
    }, PATIENCE_MS);

    async function query(sql: string, from = to): Promise<any[]> {
      const address = { host: '127.0.0.1', port: from.port, user: 'app', password: from.password, database: 'app' };
      const client = new pg.Client({ ...address, ssl: { rejectUnauthorized: false } });
      await client.connect();
      return (await client.query(sql).finally(() => client.end())).rows;
    }
    const rows = Array.from({ length: ROWS }, (_, at) => `${at}\t${'x'.repeat(200)}`).join('\n');
    const slow = 'select pg_sleep(4);';
    const dumps: Record<string, string> = {
      'before the rows': `create table t (i int primary key, s text);\n${slow}\ncopy t from stdin;\n${rows}\n\\.\n`,
      'behind the rows': `create table t (i int primary key, s text);\ncopy t from stdin;\n${rows}\n\\.\n${slow}\n`,
      // The commit takes as long: the number of the transaction is recorded by then.
      'in the commit': `create table t (i int primary key, s text);\ncopy t from stdin;\n${rows}\n\\.\n
        create function late() returns trigger language plpgsql as $$ begin perform pg_sleep(4); return null; end $$;
        create constraint trigger late after insert on t deferrable initially deferred for each row
          when (new.i = -1) execute function late();\ninsert into t values (-1, '');\n`,
    };

    const isRecorded = (id: string) =>
      waitFor('the transaction', async () => {
        const found = await plant.sql(`select from database_imports where id = $1 and observed ? 'transaction'`, [id]);
        return found.length ? true : null;
      });

    test.each(Object.keys(dumps))('killed %s, it is there as a whole', async (moment) => {
      await query('drop table if exists t; drop function if exists late()');
      const id = await send(to, dumps[moment]!);
      await isRunning(to, id);
      if (moment === 'in the commit') await isRecorded(id);
      else await sleep(1_500);
      await killAndStart();
      const done = await ended(to, id);
      expect([done.status, done.status_reason]).toEqual(['completed', null]);
      const [{ count }] = await query('select count(*)::int as count from t');
      expect(count).toBe(ROWS + (moment === 'in the commit' ? 1 : 0));
      expect(done.tables).toEqual([{ name: expect.stringMatching(/^(public\.)?t$/), rows_read: count, rows: count }]);
      expect(await query(`select from pg_stat_activity where application_name like 'import %'`)).toEqual([]);
      await nothingLeft();
    });

    test('killed at moments of the rows, and while it is canceled', async () => {
      for (const ms of [100, 300, 700]) {
        await query('drop table if exists t');
        const id = await send(to, dumps['behind the rows']!.replace(slow, ''));
        await sleep(ms);
        await killAndStart();
        const done = await ended(to, id);
        expect([ms, done.status, done.status_reason]).toEqual([ms, 'completed', null]);
        expect(await query('select count(*)::int as count from t')).toEqual([{ count: ROWS }]);
      }
      await query('drop table t');
      const id = await send(to, dumps['behind the rows']!);
      await isRunning(to, id);
      expect((await plant.call('POST', `${to.place}/${id}/cancel`)).status).toBe(202);
      await killAndStart();
      expect((await ended(to, id)).status).toBe('canceled');
      expect(await query(`select from pg_class where relname = 't'`)).toEqual([]);
      await nothingLeft();
    });

    test('killed while the file comes, it can be sent again', async () => {
      const { id, upload_url } = (await plant.call('POST', to.place, { body: { source: { upload: true } } })).body;
      const { pathname, search } = new URL(upload_url);
      const address = (): string => plant.access().url + pathname + search;
      const slowly = async function* () {
        for (;;) {
          yield Buffer.from('-- a comment that does not end soon\n');
          await sleep(50);
        }
      };
      const sent = fetch(address(), { method: 'PUT', body: slowly() as any, duplex: 'half' } as RequestInit).catch(
        () => null,
      );
      const part = path.join(place.databaseDir, 'imports', id, 'source.part');
      await waitFor('a part of the file', async () => existsSync(part));
      await killAndStart();
      await sent;
      expect((await get(to, id)).status).toBe('awaiting_upload');
      expect((await fetch(address(), { method: 'PUT', body: 'create table u (i int);' })).status).toBe(200);
      expect((await ended(to, id)).status).toBe('completed');
      await nothingLeft();
    });

    describe('with a server as its source', () => {
      let source: FollowedSource;
      beforeAll(async () => {
        source = await startFollowedSource();
        await source.query(`create table written (id int primary key, note text);
          create table extra (id int primary key);
          create table big as select i as id, repeat('y', 300) as s from generate_series(1, ${ROWS}) i;
          alter table big add primary key (id)`);
      });
      afterAll(() => source?.stop());

      test('a copy that is killed while it is read', async () => {
        for (const ms of [0, 200, 600]) {
          await query('drop table if exists written, extra, big');
          const body = { source: { url: source.address } };
          const { id } = (await plant.call('POST', to.place, { body })).body;
          await isRunning(to, id);
          await sleep(ms);
          await killAndStart();
          const done = await ended(to, id);
          expect([ms, done.status, done.status_reason]).toEqual([ms, 'completed', null]);
          expect(await query('select count(*)::int as count from big')).toEqual([{ count: ROWS }]);
        }
        expect(await source.query(`select from pg_stat_activity where application_name = 'import'`)).toEqual([]);
      });

      test('one that follows, killed in each phase, has all that was acknowledged', async () => {
        const follower = await create('postgresql');
        const writer = startWriter(source);
        const body = { source: { url: source.address }, mode: 'follow' };
        const { id } = (await plant.call('POST', follower.place, { body })).body;
        const phase = (wanted: string) =>
          waitFor(
            `the phase ${wanted}`,
            async () => {
              const one = await get(follower, id);
              if (one.status === 'failed') throw new Error(one.status_reason);
              return one.phase === wanted;
            },
            PATIENCE_MS,
          );
        for (const ms of [0, 150, 400]) {
          await isRunning(follower, id);
          await sleep(ms);
          await killAndStart();
        }
        await phase('following');
        for (const ms of [0, 300, 1_500]) {
          await sleep(ms);
          await killAndStart();
          await phase('following');
        }
        const finish = { make_source_read_only: true };
        expect((await plant.call('POST', `${follower.place}/${id}/finish`, { body: finish })).status).toBe(202);
        for (const ms of [0, 400, 1_200]) {
          await sleep(ms);
          await killAndStart();
        }
        const done = await ended(follower, id);
        await writer.stop();
        expect([done.status, done.status_reason]).toEqual(['completed', null]);
        const ids = new Set((await query('select id from written', follower)).map((row) => row.id));
        expect(writer.acknowledged.filter((one) => !ids.has(one))).toEqual([]);
        expect(await query('select count(*)::int as count from big', follower)).toEqual([{ count: ROWS }]);
        expect(await source.leftovers()).toEqual([]);
        await source.query(
          'begin read write; alter database shop reset default_transaction_read_only; commit; select 1',
        );
        // Killed while it is canceled: no slot is left either.
        const other = await create('postgresql');
        const second = (await plant.call('POST', other.place, { body })).body;
        await waitFor('following', async () => (await get(other, second.id)).phase === 'following', PATIENCE_MS);
        await plant.call('POST', `${other.place}/${second.id}/cancel`);
        await killAndStart();
        expect(await ended(other, second.id)).toMatchObject({ status: 'canceled', source_slot: null });
        expect(await source.leftovers()).toEqual([]);
      });
    });
  });

  testWhere(hasEngine('mariadb'), 'mariadb is not installed')('mariadb, at each moment', async () => {
    const to = await create('mariadb');
    const query = async (sql: string): Promise<any[]> => {
      const login = { host: '127.0.0.1', port: to.port, user: 'app', password: to.password, database: 'app' };
      const client = await createConnection({ ...login, multipleStatements: true });
      return (await client.query(sql).finally(() => client.end()))[0] as any[];
    };
    const values = (from: number) =>
      Array.from({ length: 1_000 }, (_, at) => `(${from + at},'${'x'.repeat(200)}')`).join(',');
    const inserts = Array.from({ length: 30 }, (_, at) => `INSERT INTO t VALUES ${values(at * 1_000)};`);
    const table = 'CREATE TABLE t (i int primary key, s text);\n';
    const slow = 'SELECT sleep(3);\n';
    const dumps: [string, string, number][] = [
      ['before the rows', table + slow + inserts.join('\n'), 1_000],
      ['among the rows', table + inserts.slice(0, 15).join('\n') + slow + inserts.slice(15).join('\n'), 1_500],
      ['behind the rows', `${table}${inserts.join('\n')}\n${slow}`, 2_000],
      ['at some moment', table + inserts.join('\n'), 250],
    ];
    for (const [moment, dump, ms] of dumps) {
      await query('drop table if exists t');
      const id = await send(to, dump);
      await isRunning(to, id);
      await sleep(ms);
      await killAndStart();
      const done = await ended(to, id);
      expect([moment, done.status, done.status_reason]).toEqual([moment, 'completed', null]);
      expect(done.tables).toEqual([{ name: 't', rows_read: ROWS, rows: ROWS }]);
      expect(await query('select count(*) as count from t')).toEqual([{ count: ROWS }]);
    }
    await query('drop table t');
    const id = await send(to, dumps[1]![1]);
    await isRunning(to, id);
    await sleep(1_000);
    await plant.call('POST', `${to.place}/${id}/cancel`);
    await killAndStart();
    expect((await ended(to, id)).status).toBe('canceled');
    expect(await query('show tables')).toEqual([]);
    expect(
      await query(`select * from information_schema.processlist where info like '%sleep(%'
      and id <> connection_id()`),
    ).toEqual([]);

    // From another server: the file with its password goes, too.
    await query(`create table t (i int primary key, s text); insert into t select seq, repeat('z', 300)
      from seq_1_to_${ROWS}`);
    const from = to;
    const other = await create('mariadb');
    const url = `mysql://app:${from.password}@127.0.0.1:${from.port}/app`;
    const copied = (await plant.call('POST', other.place, { body: { source: { url } } })).body;
    await isRunning(other, copied.id);
    await sleep(300);
    await killAndStart();
    const done = await ended(other, copied.id);
    expect([done.status, done.tables]).toEqual(['completed', [{ name: 't', rows_read: ROWS, rows: ROWS }]]);
    const again = (await plant.call('POST', other.place, { body: { source: { url } } })).body;
    expect((await ended(other, again.id)).status_reason).toMatch(/not empty/);
    await nothingLeft();
  });

  testWhere(hasEngine('redis'), 'redis is not installed')('redis, at each moment', async () => {
    const [from, to] = [await create('redis'), await create('redis')];
    const connect = async ({ port, password }: Target) => {
      const socket = { host: '127.0.0.1', port, tls: true as const, rejectUnauthorized: false };
      const client = createClient({ username: 'app', password, RESP: 2, disableClientInfo: true, socket });
      client.on('error', () => undefined);
      await client.connect();
      return client as any;
    };
    const [source, target] = [await connect(from), await connect(to)];
    const keys = 60_000;
    for (let at = 0; at < keys; at += 1_000)
      await source.sendCommand([
        'MSET',
        ...Array.from({ length: 1_000 }, (_, k) => [`key ${at + k}`, 'v'.repeat(100)]).flat(),
      ]);
    const { id: backup } = (await plant.call('POST', `/v2/databases/${from.id}/backups`, { body: {} })).body;
    const at = `/v2/databases/${from.id}/backups/${backup}`;
    await waitFor('the backup', async () => (await plant.call('GET', at)).body.status === 'completed', PATIENCE_MS);
    const { pathname, search } = new URL((await plant.call('GET', `${at}/download`)).body.url);
    const file = new Uint8Array(await (await fetch(plant.access().url + pathname + search)).arrayBuffer());
    for (const ms of [0, 100, 300, 600, 1_000]) {
      await target.sendCommand(['FLUSHALL']).catch(() => target.sendCommand(['FLUSHDB']));
      const id = await send(to, file);
      await sleep(ms);
      await killAndStart();
      const done = await ended(to, id);
      expect([ms, done.status, done.status_reason]).toEqual([ms, 'completed', null]);
      expect(done.tables).toEqual([{ name: 'db0', rows_read: keys, rows: keys }]);
      expect(await target.sendCommand(['DBSIZE'])).toBe(keys);
    }
    await target.sendCommand(['FLUSHALL']).catch(() => target.sendCommand(['FLUSHDB']));
    const id = await send(to, file);
    await plant.call('POST', `${to.place}/${id}/cancel`);
    await killAndStart();
    const done = await ended(to, id);
    expect(await target.sendCommand(['DBSIZE'])).toBe(done.status === 'canceled' ? 0 : keys);
    await nothingLeft();
    for (const client of [source, target]) client.destroy();
  });
});
