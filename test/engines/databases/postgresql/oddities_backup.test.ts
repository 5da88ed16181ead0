/** @tier heavy @quarter 1 @covers drivers/database/postgresql/backups */
// A database with what people have in theirs: backed up, restored, copied, and loaded into a server of PostgreSQL's
// own. It is compared by pg_dump, pg_amcheck and pg_verifybackup.
import { copyFileSync, createReadStream, mkdirSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { connect, describePostgresqlWithTools, openHall, type Hall } from '../../../support/databases/database_hall';
import { program, startStockServer } from '../../../support/databases/stock_postgresql';
import { hostFacts } from '../../../../drivers/host';
import { waitFor } from '../../../support/wait_for';

const long = `${'x'.repeat(43)} "and" 'more' ; \\ é`;
const odd = `"${long.replaceAll('"', '""')}"`;

const ODDITIES = `
create schema ${odd}; create table ${odd}.${odd} (${odd} int primary key, note text);
insert into ${odd}.${odd} values (1, E'a\\tb\\nc\\\\.'), (2, null); comment on table ${odd}.${odd} is 'it''s "odd"';
create extension unaccent; create extension pg_trgm; create extension hstore; create extension citext;
create extension pgcrypto; create extension btree_gist; create extension ltree;
create table chickens (id int primary key, egg int);
create table eggs (id int primary key, chicken int references chickens);
insert into chickens values (1, 1); insert into eggs values (1, 1);
alter table chickens add foreign key (egg) references eggs deferrable initially deferred;
create table measured (id int, at date) partition by range (at);
create table measured_2024 partition of measured for values from ('2024-01-01') to ('2025-01-01')
  partition by hash (id);
create table measured_2024_0 partition of measured_2024 for values with (modulus 2, remainder 0);
create table measured_2024_1 partition of measured_2024 for values with (modulus 2, remainder 1);
create table measured_rest partition of measured default; create index on measured (at);
insert into measured select i, date '2024-12-01' + i from generate_series(1, 60) i;
create table generated (id int generated always as identity (start 7), a int,
  twice int generated always as (a * 2) stored);
insert into generated (a) values (1), (2);
create view v1 as select id, egg from chickens; create view v2 with (security_barrier) as select * from v1 where id > 0;
create materialized view m1 as select * from v2; create materialized view m2 as select * from m1 with no data;
create function doomed(int) returns int language sql as 'select $1';
create function calls() returns int language plpgsql
  as 'begin return doomed(1); end'; create view failing as select calls() as n; drop function doomed(int);
create rule v1_insert as on insert to v1 do instead insert into chickens values (new.id, new.egg);
create function never() returns trigger language plpgsql as $$ begin raise exception 'never'; end $$;
create table refusing (id int); insert into refusing values (1);
create trigger refuses before insert or update or delete on refusing for each row execute function never();
alter table refusing enable always trigger refuses;
create collation ignoring (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create collation german (provider = icu, locale = 'de-u-co-phonebk');
create table sorted (t text collate ignoring unique, u text collate german);
insert into sorted values ('Ä', 'ö'), ('b', 'z');
create unlogged table unlogged (id int); insert into unlogged values (1);
create table policed (id int, owner text default current_user); insert into policed values (1), (2);
alter table policed enable row level security; alter table policed force row level security;
create policy own on policed to reports using (owner = current_user) with check (id > 0);
alter default privileges in schema ${odd} grant select on tables to reports with grant option;
alter default privileges revoke execute on functions from public; grant select (id) on refusing to reports;
create type mood as enum ('sad', 'it''s ok'); create type pair as (x int, y text);
create domain small as int check (value < 9);
create table typed (m mood default 'sad', p pair, ps pair[], s small, f float8, t timestamptz, r int4range, j json,
  jb jsonb, h hstore, c citext);
insert into typed values ('it''s ok', '(1,"a,b")', '{"(1,a)"}', 3, 'NaN', 'infinity', '[1,5)',
  '{"a" : [1, null], "a":2}', '{"a": 1}', 'a=>1', 'Word'),
  (null, null, null, null, '-Infinity', '4713-01-01 BC', 'empty', 'null', 'null', null, null);
create table large (b bytea); alter table large alter b set storage external;
insert into large values (convert_to(repeat('ab', 33554432), 'UTF8'));
select lo_create(4242); select lo_put(4242, 0, 'large'); comment on large object 4242 is 'a large object';
create statistics correlated (dependencies) on id, egg from chickens; create sequence counted start 5 increment 3;
select nextval('counted'); create publication pub for table chickens;
alter role app in database app set work_mem = '3MB'; alter role app set timezone = 'Europe/Berlin'`;

// No dump can load these: while it is loaded, names are found in pg_catalog alone.
const UNQUALIFIED = `
create function plain(text) returns text immutable language sql as $$ select lower(unaccent('unaccent', $1)) $$;
create table articles (title text); insert into articles select 'Ärticle ' || i from generate_series(1, 500) i;
create index articles_plain on articles (plain(title))`;

describePostgresqlWithTools(() => {
  let hall: Hall;
  let bin: string;

  beforeAll(async () => {
    hall = await openHall();
    bin = path.dirname((await hostFacts()).postgresql.find(({ tools }) => tools.includes('pg_basebackup'))?.path ?? '');
  }, 60_000);
  afterAll(() => hall?.close(), 60_000);

  const tool = (name: string, args: string[]) => program(path.join(bin, name), args);
  const ask = async (id: string, ...statements: string[]): Promise<Record<string, unknown>[]> => {
    const { body } = await hall.call('GET', `/v2/databases/${id}/credentials`);
    let rows: Record<string, unknown>[] = [];
    await connect(body.endpoints[0].connection_string, async (client) => {
      for (const statement of statements) ({ rows } = await client.query(statement));
    });
    return rows;
  };
  /** As the operator: past row policies. */
  const socketOf = async (id: string): Promise<string[]> => {
    const [row] = await hall.service.sql<{ port: number }>('select port from databases where id = $1', [id]);
    return ['-h', path.join(hall.databaseDir, id, 'socket'), '-p', String(row?.port), '-U', 'platform_admin'];
  };
  /** What pg_dump says of it, without the random word of its \restrict. */
  async function dumpOf(connection: string[], ...options: string[]): Promise<{ text: string; large: string }> {
    const file = path.join(hall.service.dataDir, 'compared.sql');
    const all = [...connection, '-w', '-d', 'app', '--no-unlogged-table-data', ...options];
    const text = tool('pg_dump', [...all, '--exclude-table-data=large']).replaceAll(/^\\(un)?restrict .*$/gm, '');
    tool('pg_dump', [...all, '-t', 'large', '--data-only', '--inserts', '-f', file]);
    const hash = createHash('sha256');
    await pipeline(createReadStream(file), async (chunks) => {
      for await (const chunk of chunks) hash.update(String(chunk).replaceAll(/^\\(un)?restrict .*$/gm, ''));
    });
    return { text, large: hash.digest('hex') };
  }
  const backup = async (id: string) => {
    const { body } = await hall.call('POST', `/v2/databases/${id}/backups`, { body: {} });
    return waitFor(
      'the backup',
      async () => {
        const found = (await hall.call('GET', `/v2/databases/${id}/backups/${body.id}`)).body;
        return ['completed', 'failed'].includes(found.status) ? found : null;
      },
      120_000,
    );
  };

  test('is what it was: restored, copied, and in a server that is not ours', async () => {
    const { id } = await hall.create({ name: 'odd', engine: 'postgresql', database_package: 's-1vcpu-1gb' });
    expect(Buffer.byteLength(long)).toBe(63);
    await hall.call('POST', `/v2/databases/${id}/users`, { body: { username: 'reports', access: 'read_only' } });
    await waitFor('the user', async () => {
      const [row] = await ask(id, "select count(*)::int as n from pg_roles where rolname = 'reports'");
      return row?.n === 1 ? true : null;
    });
    await ask(id, ODDITIES);
    const made = await backup(id);
    expect([made.status, made.status_reason]).toEqual(['completed', null]);
    const before = await dumpOf(await socketOf(id));
    const bare = await dumpOf(await socketOf(id), '--no-owner', '--no-privileges');

    const base = path.join(hall.databaseDir, 'backups', id, made.id, 'base');
    const unpacked = path.join(hall.service.dataDir, 'unpacked');
    mkdirSync(unpacked);
    program('tar', ['-xzf', path.join(base, 'base.tar.gz'), '-C', unpacked]);
    program('tar', ['-xzf', path.join(base, 'pg_wal.tar.gz'), '-C', path.join(unpacked, 'pg_wal')]);
    copyFileSync(path.join(base, 'backup_manifest'), path.join(unpacked, 'backup_manifest'));
    expect(tool('pg_verifybackup', [unpacked])).toMatch(/backup successfully verified/);

    await ask(id, `drop schema ${odd} cascade; truncate chickens cascade; drop table large`);
    const back = await hall.act(id, 'restore', { backup_id: made.id });
    expect([back.status, back.status_reason]).toEqual(['available', null]);
    expect(await dumpOf(await socketOf(id))).toEqual(before);
    expect(await ask(id, "select current_setting('work_mem') as m, current_setting('timezone') as t")).toEqual([
      { m: '3MB', t: 'Europe/Berlin' },
    ]);

    const copy = await hall.create({
      name: 'odd-copy',
      engine: 'postgresql',
      restore_from: { database_id: id, backup_id: made.id },
    });
    expect([copy.status, copy.status_reason]).toEqual(['available', null]);
    // Users are not copied, and what is for them alone goes with them.
    expect(await dumpOf(await socketOf(copy.id), '--no-owner', '--no-privileges')).toEqual({
      ...bare,
      text: bare.text.replace(/--\n-- Name: policed own;.*\n--\n\nCREATE POLICY own .*\n\n\n/, ''),
    });
    tool('pg_amcheck', [...(await socketOf(copy.id)), '-w', '-d', 'app', '--install-missing', '--heapallindexed']);

    const { url } = (await hall.call('GET', `/v2/databases/${id}/backups/${made.id}/download`)).body;
    const answer = await fetch(url.replace(/^https?:\/\/[^/]+/, hall.service.url));
    const file = path.join(hall.service.dataDir, 'odd.dump');
    writeFileSync(file, Buffer.from(await answer.arrayBuffer()));
    const stock = startStockServer(bin);
    try {
      tool('psql', [...stock.connection, '-qc', 'create role reports', '-c', 'create database app template template0']);
      tool('pg_restore', [...stock.connection, '--no-owner', '--no-privileges', '--exit-on-error', '-d', 'app', file]);
      // The schema public has the owner that PostgreSQL gives it.
      const own = /--\n-- Name: public; Type: SCHEMA;.*\n--\n\n-- \*not\* creating schema.*\n\n\n/;
      expect(await dumpOf(stock.connection, '--no-owner', '--no-privileges')).toEqual({
        ...bare,
        text: bare.text.replace(own, ''),
      });
    } finally {
      stock.stop();
    }
  }, 590_000);

  test('functions that name nothing by its schema are in backups, restores and copies', async () => {
    const { id } = await hall.create({ name: 'search', engine: 'postgresql' });
    await ask(id, `create extension unaccent; ${UNQUALIFIED}`);
    const made = await backup(id);
    expect([made.status, made.status_reason]).toEqual(['completed', null]);
    await ask(id, 'truncate articles');
    await hall.act(id, 'restore', { backup_id: made.id });
    const copy = await hall.create({
      name: 'search-copy',
      engine: 'postgresql',
      restore_from: { database_id: id, backup_id: made.id },
    });
    for (const one of [id, copy.id])
      expect(
        await ask(one, 'set enable_seqscan = off', "select title from articles where plain(title) = 'article 7'"),
      ).toEqual([{ title: 'Ärticle 7' }]);
  }, 180_000);
});
