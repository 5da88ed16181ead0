/** @tier heavy @quarter 3 @covers drivers/database/postgresql/imports */
// Imports from servers that are newer than those of this machine: copied and followed, with what is new in them.
import pg from 'pg';
import { describePostgresqlWithTools, openHall, type Hall } from '../support/databases/database_hall';
import { startFollowedSource, startWriter, type FollowedSource } from '../support/databases/followed_source';
import { importsOf, type Imports } from '../support/databases/imports';
import { openOtherPostgresql, type OtherSeries } from '../support/databases/other_postgresql';
import { waitFor } from '../support/wait_for';

jest.setTimeout(300_000);

/* oxlint-disable typescript/no-explicit-any -- answers of the service */

const SCHEMA = `
  create table written (id int primary key, note text);
  create table extra (id int generated always as identity primary key, tags text[], amount numeric(10, 2),
    twice numeric generated always as (amount * 2) stored);
  insert into extra (tags, amount) select array['a', 'b ' || i], i / 4.0 from generate_series(1, 500) i;
  create table large (id int primary key, parent int references large, body text, n int);
  insert into large select i, nullif(i / 2, 0), repeat(md5(i::text), 5000), 0 from generate_series(1, 40) i;
  create table whole (a int, b json, c text, d numeric generated always as (a + 1) stored);
  alter table whole replica identity full;
  insert into whole select i, '{"x": 1}', 'same' from generate_series(1, 20) i, generate_series(1, 2);
  create table indexed (a int not null, b text not null, c text);
  create unique index indexed_key on indexed (b, a);
  alter table indexed replica identity using index indexed_key;
  insert into indexed select i, 'b' || i, 'c' from generate_series(1, 20) i;
  create table parts (id int, at date, primary key (id, at)) partition by range (at);
  create table parts_2025 partition of parts for values from ('2025-01-01') to ('2026-01-01');
  create table parts_more partition of parts for values from ('2026-01-01') to ('2028-01-01')
    partition by list (id);
  create table parts_more_rest partition of parts_more default;
  insert into parts values (1, '2025-03-03'), (2, '2026-03-03');
  create sequence plain_numbers;
  select setval('plain_numbers', 20, false);
  alter database shop set idle_session_timeout = '1s';
  create publication filtered for table only written (id) where (id > 1000000)`;
const CHANGES = `
  update large set n = n + 1 where id < 20; update large set body = 'short' where id = 21;
  update large set id = 1000 where id = 39;
  update whole set c = 'changed' where a = 3; delete from whole where a = 4;
  update indexed set c = 'd' where a = 5; update indexed set b = 'new' where a = 6; delete from indexed where a = 7;
  insert into extra (tags, amount) values (array['"q"', null, 'ü'], 12.5); update extra set amount = 7 where id = 7;
  insert into parts values (1, '2025-05-05'), (2, '2026-05-05');
  update parts set at = '2027-01-01' where at = '2025-05-05'`;
const TABLES = ['written', 'extra', 'large', 'whole', 'indexed', 'parts'];

describePostgresqlWithTools(() => {
  const other = openOtherPostgresql();
  const { PATH } = process.env;
  let hall: Hall;
  let source: FollowedSource | undefined;

  async function open(searchPath: string): Promise<void> {
    process.env.PATH = `${searchPath}:${PATH}`;
    hall = await openHall({ ALLOW_PRIVATE_ADDRESSES: '1' });
  }
  afterEach(async () => {
    source?.stop();
    source = undefined;
    await hall.close();
    process.env.PATH = PATH;
  });
  afterAll(() => other.remove());

  interface Target {
    id: string;
    imports: Imports;
    query(sql: string): Promise<any[]>;
    close(): Promise<void>;
  }

  async function target(name: string, engine_version: string): Promise<Target> {
    const { id } = await hall.create({ name, engine: 'postgresql', engine_version });
    const address = (await hall.call('GET', `/v2/databases/${id}/credentials`)).body.endpoints[0].connection_string;
    const client = new pg.Client({ connectionString: address.replace('sslmode=require', 'sslmode=no-verify') });
    client.on('error', () => undefined);
    await client.connect();
    return {
      ...{ id, imports: importsOf(hall, id) },
      query: async (sql) => (await client.query(sql)).rows,
      async close() {
        await client.end();
        await hall.remove(id);
      },
    };
  }

  const begin = ({ imports }: Target, body: object) => imports.begin({ source: { url: source!.address }, ...body });
  const phase = ({ imports }: Target, id: string, wanted: string) =>
    waitFor(
      `the phase ${wanted}`,
      async () => {
        const one = await imports.get(id);
        if (['failed', 'canceled'].includes(one.status)) throw new Error(one.status_reason);
        return one.phase === wanted ? one : null;
      },
      60_000,
    );
  const content = async (query: (sql: string) => Promise<any[]>) => {
    const found: Record<string, unknown> = {};
    for (const table of TABLES)
      [found[table]] = await query(
        `select count(*)::int, md5(string_agg(t::text, chr(10) order by t::text)) from ${table} t`,
      );
    found.sequences = await query(`select nextval('plain_numbers') as a, nextval('extra_id_seq') as b`);
    return found;
  };

  async function followAndSwitch(to: Target): Promise<void> {
    const writer = startWriter(source!);
    await waitFor('rows', async () => writer.acknowledged.length > 20);
    const { id } = await begin(to, { mode: 'follow' });
    await phase(to, id, 'following');
    const slots = await source!.query('select to_jsonb(s) as slot from pg_replication_slots s');
    expect(slots.map(({ slot }) => slot.failover ?? true)).toEqual([true]);
    await source!.query(CHANGES);
    await source!.query(`begin; insert into written values (-1, 'prepared'); prepare transaction 'one'; select 1`);
    const finish = () =>
      hall.call('POST', `${to.imports.place}/${id}/finish`, { body: { make_source_read_only: true } });
    expect((await finish()).status).toBe(202);
    const refused = await waitFor('the refusal', async () => {
      const { status_reason } = await to.imports.get(id);
      return /prepared transaction/i.test(status_reason ?? '') ? status_reason : null;
    });
    expect(refused).toMatch(/COMMIT PREPARED or ROLLBACK PREPARED.*finish again/i);
    await source!.query(`commit prepared 'one'`);
    const begun = Date.now();
    expect((await finish()).status).toBe(202);
    const done = await to.imports.ended(id);
    expect([done.status, done.status_reason]).toEqual(['completed', null]);
    expect(Date.now() - begun).toBeLessThan(60_000);
    await writer.stop();
    for (const { name, rows_read, rows } of done.tables) expect([name, rows]).toEqual([name, rows_read]);
    const ids = new Set((await to.query('select id from written')).map((row) => row.id));
    expect([-1, ...writer.acknowledged].filter((one) => !ids.has(one))).toEqual([]);
    await source!.query('begin read write; alter database shop reset default_transaction_read_only; commit; select 1');
    expect(await content(to.query)).toEqual(await content(source!.query));
    expect(await source!.leftovers()).toEqual(['filtered']);
  }

  test.each([16, 17, 18] as OtherSeries[])(
    'all of a PostgreSQL %s is copied and followed with pg_dump of a package of clients',
    async (series) => {
      await open(other.clients());
      source = await startFollowedSource(['wal_level=logical', 'max_prepared_transactions=5'], other.server(series));
      await source.query(SCHEMA);
      if (series >= 17) await source.query(`alter database shop set transaction_timeout = '5s'`);
      const copied = await target('copied', '15');
      const { id } = await begin(copied, {});
      expect(await copied.imports.ended(id)).toMatchObject({ status: 'completed', status_reason: null });
      expect(await content(copied.query)).toEqual(await content(source.query));
      await copied.close();
      const followed = await target('followed', '15');
      await followAndSwitch(followed);
      await followed.close();
    },
  );

  test('a source that is newer than pg_dump of the host is refused with what to install', async () => {
    await open('/nonexistent');
    source = await startFollowedSource(['wal_level=logical'], other.server(17));
    await source.query(SCHEMA);
    const to = await target('old', '15');
    for (const mode of ['copy', 'follow']) {
      const { id } = await begin(to, { mode });
      expect(await to.imports.ended(id)).toMatchObject({
        status: 'failed',
        status_reason: expect.stringMatching(
          /^The source is PostgreSQL 17, and the newest pg_dump of the host is 15\. .*postgresql-client-17/,
        ),
      });
      expect(await source.leftovers()).toEqual(['filtered']);
    }
    await to.close();
  });

  test('virtual columns of a PostgreSQL 18 are followed to another one, and not to an older one', async () => {
    await open(other.clients());
    source = await startFollowedSource(['wal_level=logical'], other.server(18));
    await source.query(`create table written (id int primary key, note text, twice int generated always as (id * 2));
      insert into written values (-1, 'first')`);
    const older = await target('older', '15');
    const { id: first } = await begin(older, {});
    expect(await older.imports.ended(first)).toMatchObject({
      status: 'failed',
      status_reason: expect.stringMatching(/Syntax error.*The source is PostgreSQL 18, and the database is 15/),
    });
    await older.close();
    const to = await target('newer', '18');
    const { id } = await begin(to, { mode: 'follow' });
    await phase(to, id, 'following');
    await source.query(`insert into written values (1, 'second'); update written set note = 'changed' where id = -1`);
    expect((await hall.call('POST', `${to.imports.place}/${id}/finish`, { body: {} })).status).toBe(202);
    expect(await to.imports.ended(id)).toMatchObject({ status: 'completed', status_reason: null });
    expect(await to.query('select id, note, twice from written order by id')).toEqual([
      { id: -1, note: 'changed', twice: -2 },
      { id: 1, note: 'second', twice: 2 },
    ]);
    await to.close();
  });

  test.each([
    [17, 'a int, b int generated always as (a + 1) stored primary key', ''],
    [18, 'a int, b int generated always as (a + 1) virtual', 'alter table odd replica identity full;'],
  ] as const)(
    'a table of %s whose rows are identified by what is not sent is refused',
    async (series, columns, more) => {
      await open(other.clients());
      source = await startFollowedSource(['wal_level=logical'], other.server(series));
      await source.query(`create table written (id int primary key); create table odd (${columns}); ${more}
      insert into odd values (1)`);
      const to = await target('odd', '15');
      const { id } = await begin(to, { mode: 'follow' });
      expect((await to.imports.ended(id)).status_reason).toMatch(
        /cannot be followed: public\.odd have generated columns in their replica identity/,
      );
      // Its owner still may change it.
      await source.query('update odd set a = 2');
      await to.close();
    },
  );

  test('a sequence that goes on without rows, and a row that is too large, are not passed over', async () => {
    await open(other.clients());
    source = await startFollowedSource(['wal_level=logical'], other.server(16));
    await source.query('create table written (id int primary key, note text); create sequence numbers');
    const to = await target('sequence', '15');
    const { id } = await begin(to, { mode: 'follow' });
    await phase(to, id, 'following');
    let isStopped = false;
    const client = new pg.Client({ connectionString: source.address });
    await client.connect();
    const advancing = (async () => {
      while (!isStopped) await client.query(`select nextval('numbers')`);
    })();
    expect((await hall.call('POST', `${to.imports.place}/${id}/finish`, { body: {} })).status).toBe(202);
    await waitFor(
      'the refusal',
      async () => /still written/.test((await to.imports.get(id)).status_reason ?? ''),
      60_000,
    );
    isStopped = true;
    await advancing;
    await client.end();
    await source.query(`insert into written values (1, repeat('x', 70 * 1024 * 1024))`);
    const ended = await to.imports.ended(id);
    expect([ended.status, ended.source_slot]).toEqual(['failed', null]);
    expect(ended.status_reason).toMatch(/more than 64 MB.*exclude their table/);
    expect(await source.leftovers()).toEqual([]);
    await to.close();
  });
});
