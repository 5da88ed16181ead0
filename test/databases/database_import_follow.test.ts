/** @tier heavy @quarter 1 @covers drivers/database/postgresql/imports/follow jobs/databases/database_import */
// Imports that follow their source: rows are written there all the while, and all that was acknowledged is here.
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { describePostgresqlWithTools, openHall, type Hall } from '../support/databases/database_hall';
import { startHostileSource } from '../support/databases/hostile_source';
import { startFollowedSource, startWriter, type FollowedSource } from '../support/databases/followed_source';
import { importsOf, type Imports } from '../support/databases/imports';
import { waitFor } from '../support/wait_for';

jest.setTimeout(240_000);

/* oxlint-disable typescript/no-explicit-any -- answers of the service */

const SCHEMA = `
  create table written (id int primary key, note text);
  create table extra (id int generated always as identity primary key, at timestamptz default now(),
    tags text[], data jsonb, amount numeric(10, 2), twice numeric generated always as (amount * 2) stored,
    raw bytea, kind bit(3), span interval);
  insert into extra (tags, data, amount, raw, kind, span) select array['a', 'b ' || i], jsonb_build_object('n', i),
    i / 4.0, decode('00ff', 'hex'), b'101', '1 mon 2 days' from generate_series(1, 500) i;
  create table tree (id int primary key, parent int references tree, large text);
  insert into tree select i, nullif(i / 2, 0), repeat(md5(i::text), 500) from generate_series(1, 50) i;
  create table whole (a int, b json, c text);
  alter table whole replica identity full;
  insert into whole select i, '{"x": 1}', 'same' from generate_series(1, 20) i, generate_series(1, 2);
  create table audit (id serial primary key, what text);
  create function noted() returns trigger language plpgsql as
    $$ begin insert into public.audit (what) values (tg_op || ' ' || new.id); return new; end $$;
  create trigger noted after insert on written for each row execute function noted();
  create table parts (id int, at date, primary key (id, at)) partition by range (at);
  create table parts_2025 partition of parts for values from ('2025-01-01') to ('2026-01-01');
  create table parts_2026 partition of parts for values from ('2026-01-01') to ('2027-01-01');
  create sequence plain_numbers;
  create view seen as select count(*) as count from written;
  create unlogged table scratch (id int primary key);
  create materialized view kept as select 1 as one;
  select lo_from_bytea(0, 'large')`;

describePostgresqlWithTools(() => {
  let hall: Hall;
  let source: FollowedSource;

  beforeAll(async () => {
    hall = await openHall({ ALLOW_PRIVATE_ADDRESSES: '1' });
  });
  afterAll(async () => {
    await hall?.close();
  });
  beforeEach(async () => {
    source = await startFollowedSource(['wal_level=logical', 'wal_sender_timeout=10s']);
    await source.query(SCHEMA);
  });
  afterEach(() => source?.stop());

  interface Target {
    id: string;
    imports: Imports;
    query(sql: string): Promise<any[]>;
    close(): Promise<void>;
  }

  async function target(name: string): Promise<Target> {
    const { id } = await hall.create({ name, engine: 'postgresql', engine_version: '15' });
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

  async function follow({ imports }: Target, body: object = {}): Promise<any> {
    const { status, body: made } = await hall.call('POST', imports.place, {
      body: { source: { url: source.address }, mode: 'follow', ...body },
    });
    expect([status, made.code]).toEqual([201, undefined]);
    return made;
  }
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
  const said = ({ imports }: Target, id: string, reason: RegExp) =>
    waitFor(
      `the reason ${String(reason)}`,
      async () => {
        const one = await imports.get(id);
        return reason.test(one.status_reason ?? '') ? one : null;
      },
      60_000,
    );
  const finish = ({ imports }: Target, id: string, body: object) =>
    hall.call('POST', `${imports.place}/${id}/finish`, { body });

  test('all rows that were acknowledged at the source are here after the switch, which takes seconds', async () => {
    const to = await target('switched');
    const writer = startWriter(source);
    await waitFor('rows', async () => writer.acknowledged.length > 50);
    const { id } = await follow(to);
    const following = await phase(to, id, 'following');
    expect(following).toMatchObject({ status: 'running', source_slot: `platform_${id}`, mode: 'follow' });
    expect(await source.leftovers()).toEqual([`platform_${id}`]);
    await source.query(`delete from tree; insert into tree select i, null, repeat('x', 9000)
      from generate_series(1, 30) i; update tree set parent = 1 where id > 1;
      update whole set c = 'changed' where a = 3; delete from whole where a = 4;
      insert into extra (tags, amount) values (array['"q"', null, 'ü'], 12.5); update extra set amount = 7 where id = 7;
      insert into parts values (1, '2025-05-05'), (2, '2026-05-05'); update parts set at = '2026-01-01' where id = 1;
      select setval('plain_numbers', 4711); insert into audit (what) values ('by hand'); truncate scratch`);
    const refused = await finish(to, id, {});
    expect(refused.status).toBe(202);
    expect((await said(to, id, /still written|catch up/)).phase).toBe('following');
    const begun = Date.now();
    expect((await finish(to, id, { make_source_read_only: true })).status).toBe(202);
    const done = await to.imports.ended(id);
    const seconds = (Date.now() - begun) / 1000;
    await writer.stop();
    expect([done.status, done.status_reason]).toEqual(['completed', null]);
    expect(seconds).toBeLessThan(60);
    for (const { name, rows_read, rows } of done.tables) expect([name, rows]).toEqual([name, rows_read]);
    const ids = new Set((await to.query('select id from written')).map((row) => row.id));
    expect(writer.acknowledged.filter((one) => !ids.has(one))).toEqual([]);
    const rows = async (query: (sql: string) => Promise<any[]>) => {
      const content: Record<string, unknown> = {};
      for (const table of ['written', 'extra', 'tree', 'whole', 'audit', 'parts'])
        [content[table]] = await query(
          `select count(*)::int, md5(string_agg(t::text, chr(10) order by t::text)) from ${table} t`,
        );
      content.sequence = await query(`select nextval('plain_numbers') as a, nextval('audit_id_seq') as b,
        nextval('extra_id_seq') as c`);
      return content;
    };
    await source.query('begin read write; alter database shop reset default_transaction_read_only; commit; select 1');
    expect(await rows(to.query)).toEqual(await rows(source.query));
    expect(await source.leftovers()).toEqual([]);
    const missing = done.not_taken_over.map((one: any) => `${one.kind} ${one.name}`);
    expect(missing).toEqual(
      expect.arrayContaining(['changes public.scratch', 'changes large objects', 'changes public.kept']),
    );
    expect(await to.query(`select from pg_roles where rolname = 'platform_import'`)).toEqual([]);
    expect(await to.query('select from pg_subscription')).toEqual([]);
    await to.close();
  });

  test('what the source lacks is said, and nothing is left there', async () => {
    const to = await target('lacking');
    await source.query(`create table keyless (a int); create role plain login; create role reader login replication;
      grant all on all tables in schema public to plain, reader`);
    for (const [user, body, reason] of [
      ['postgres', {}, /public\.keyless have no primary key.*REPLICA IDENTITY FULL, or exclude/],
      ['plain', { exclude: ['keyless'] }, /ALTER ROLE … REPLICATION.*CREATE ON DATABASE.*does not own public\.audit/],
      ['nobody', {}, /The source refuses: Role "nobody" does not exist\.$/],
    ] as [string, object, RegExp][]) {
      const { id } = await follow(to, { source: { url: source.addressOf(user) }, ...body });
      const ended = await to.imports.ended(id);
      expect([user, ended.status, ended.status_reason]).toEqual([user, 'failed', expect.stringMatching(reason)]);
      expect(await source.leftovers()).toEqual([]);
    }
    for (const [wanted, code] of [
      [{ source: { upload: true }, mode: 'follow' }, 'validation_failed'],
      [{ source: { url: 'https://example.com/x' }, mode: 'follow' }, 'validation_failed'],
    ] as const)
      expect((await hall.call('POST', to.imports.place, { body: wanted })).body.code).toBe(code);
    const physical = await startFollowedSource(['wal_level=replica']);
    await physical.query('create table t (id int primary key)');
    const { id } = await follow(to, { source: { url: physical.address } });
    expect((await to.imports.ended(id)).status_reason).toMatch(/wal_level is replica and has to be logical/);
    physical.stop();
    await to.close();
  });

  test('a source that goes away is waited for, and changes of tables are said', async () => {
    const to = await target('waiting');
    const { id } = await follow(to);
    await phase(to, id, 'following');
    source.server.kill();
    await said(to, id, /source does not answer|connection was lost/i);
    // As its address may after a failover.
    const signal = path.join(source.server.connection[1]!, 'data', 'standby.signal');
    writeFileSync(signal, '');
    source.server.startAgain();
    await said(to, id, /source is a standby now/);
    source.server.kill();
    rmSync(signal);
    source.server.startAgain();
    await source.query(`insert into written values (1, 'after'); create table later (id int primary key)`);
    await waitFor('the row', async () => (await to.query('select from written')).length === 1);
    await waitFor('no reason', async () => (await to.imports.get(id)).status_reason === null);
    await source.query(`alter table written add column more text; insert into written values (2, 'b', 'c')`);
    await said(to, id, /table public\.written is not that of the source.*more/);
    await to.query('alter table written add column more text');
    await waitFor('the row', async () => (await to.query(`select from written where more = 'c'`)).length === 1);
    await waitFor('no reason', async () => (await to.imports.get(id)).status_reason === null);
    // Rows of the owner are in the way: nothing of the values is said.
    await to.query('alter table written disable trigger noted');
    await to.query(`insert into written values (7, 'secret here')`);
    await source.query(`insert into written values (7, 'secret there', '')`);
    expect((await said(to, id, /change of the table public\.written cannot be applied/)).status_reason).not.toMatch(
      /secret/,
    );
    await to.query('delete from written where id = 7');
    await waitFor('no reason', async () => (await to.imports.get(id)).status_reason === null);
    expect((await finish(to, id, {})).status).toBe(202);
    const done = await to.imports.ended(id);
    expect([done.status, done.status_reason]).toEqual(['completed', null]);
    expect(done.not_taken_over).toContainEqual(expect.objectContaining({ kind: 'table', name: 'public.later' }));
    expect(await to.query('select id, note from written order by id')).toEqual(
      await source.query('select id, note from written order by id'),
    );
    expect(await source.leftovers()).toEqual([]);
    await to.close();
  });

  test('a canceled one leaves no slot, also where it failed while the source was away', async () => {
    const to = await target('canceled');
    const first = await follow(to, { exclude: ['audit'] });
    await phase(to, first.id, 'following');
    expect((await hall.call('POST', `${to.imports.place}/${first.id}/cancel`)).status).toBe(202);
    expect(await to.imports.ended(first.id)).toMatchObject({ status: 'canceled', source_slot: null, phase: null });
    expect(await source.leftovers()).toEqual([]);
    expect(await to.query('select count(*)::int as count from extra')).toEqual([{ count: 500 }]);
    await to.query('drop schema public cascade; create schema public').catch(() => undefined);
    await to.close();

    const other = await target('failed');
    const { id } = await follow(other);
    await phase(other, id, 'following');
    source.server.kill();
    expect((await hall.call('POST', `${other.imports.place}/${id}/cancel`)).status).toBe(202);
    const ended = await other.imports.ended(id);
    expect(ended).toMatchObject({ status: 'canceled', source_slot: `platform_${id}` });
    expect(ended.status_reason).toMatch(/replication slot platform_\S+ could not be removed/);
    source.server.startAgain();
    expect(await source.leftovers()).toEqual([`platform_${id}`]);
    await waitFor('no slot', async () => (await source.leftovers()).length === 0, 60_000);
    await waitFor('the import', async () => (await other.imports.get(id)).source_slot === null);
    await other.close();
  });

  test('a slot that is lost ends the import, and a database that is deleted drops its slot', async () => {
    const to = await target('lost');
    const first = await follow(to);
    await phase(to, first.id, 'following');
    await waitFor('no slot', async () => {
      await source.query('select pg_terminate_backend(active_pid) from pg_replication_slots');
      await source
        .query('select pg_drop_replication_slot(slot_name) from pg_replication_slots where not active')
        .catch(() => undefined);
      return (await source.query('select from pg_replication_slots')).length === 0;
    });
    const ended = await to.imports.ended(first.id);
    expect(ended).toMatchObject({ status: 'failed', source_slot: null });
    expect(ended.status_reason).toMatch(/slot platform_\S+ is not at the source any more/);
    expect(await source.leftovers()).toEqual([]);
    await to.close();
    const other = await target('deleted');
    const { id } = await follow(other);
    await phase(other, id, 'following');
    expect(await source.leftovers()).toHaveLength(1);
    await other.close();
    await waitFor('no slot', async () => (await source.leftovers()).length === 0, 60_000);
  });

  test('a change reaches its own rows alone, and waits where the tables here stand in its way', async () => {
    await source.query(`create table parent (id int primary key, note text); insert into parent values (1, 'a');
      create table marked (a int, flag bool, code char(5), at timestamptz, rest text);
      alter table marked replica identity full;
      insert into marked select i, true, 'x', now(), null from generate_series(1, 20) i`);
    const to = await target('own-rows');
    const { id } = await follow(to);
    await phase(to, id, 'following');
    await to.query('alter table marked add column own int generated always as identity primary key');
    await source.query(`update marked set rest = 'one' where a = 3; delete from marked where a = 4`);
    await waitFor('the row', async () => (await to.query(`select from marked where rest = 'one'`)).length > 0);
    expect(await to.query('select count(*)::int, count(rest)::int as changed from marked')).toEqual([
      { count: 19, changed: 1 },
    ]);
    await to.query(`create table mine (parent int references parent); insert into mine values (1);
      alter table tree enable row level security, force row level security`);
    await source.query('truncate parent cascade');
    await said(to, id, /table public\.parent cannot be applied.*foreign key/);
    expect(await to.query('select from mine')).toHaveLength(1);
    await to.query('alter table mine drop constraint mine_parent_fkey');
    await waitFor('no rows', async () => (await to.query('select from parent')).length === 0);
    expect(await to.query('select from mine')).toHaveLength(1);
    await source.query(`update tree set large = 'short' where id = 50`);
    await said(to, id, /table public\.tree cannot be applied.*row-level security/);
    await to.query('alter table tree no force row level security');
    await waitFor('the row', async () => (await to.query(`select from tree where large = 'short'`)).length === 1);
    await to.close();
  });

  test('a source that cannot be read-only goes on, and what cannot be removed there goes later', async () => {
    await source.query(`select lo_unlink(oid) from pg_largeobject_metadata; drop schema public cascade;
      create role keeper login replication; create role app login;
      alter database shop owner to keeper; create schema public authorization keeper; set role keeper;
      create table written (id int primary key); grant usage on schema public to app; grant all on written to app`);
    const address = source.addressOf('keeper');
    const app = new pg.Client({ connectionString: source.addressOf('app') });
    app.on('error', () => undefined);
    await app.connect();
    const to = await target('kept');
    const first = await follow(to, { source: { url: address } });
    await phase(to, first.id, 'following');
    let written = 0;
    const refused = async (id: string) => {
      expect((await finish(to, id, { make_source_read_only: true })).status).toBe(202);
      const { status_reason: reason } = await phase(to, id, 'following');
      expect(reason).toMatch(/sessions of app.*GRANT pg_monitor, pg_signal_backend/);
      await app.query('insert into written values ($1)', [(written += 1)]);
      await waitFor('the row', async () => (await to.query('select from written')).length === written);
      expect(await source.query(`select from pg_db_role_setting where setconfig::text ~ 'read_only'`)).toEqual([]);
    };
    await refused(first.id);
    await source.query('grant pg_monitor to keeper');
    await refused(first.id);
    await source.query('alter database shop owner to postgres');
    await hall.call('POST', `${to.imports.place}/${first.id}/cancel`);
    expect(await to.imports.ended(first.id)).toMatchObject({ status: 'canceled', source_slot: null });
    expect(await source.leftovers()).toEqual([]);
    await source.query('alter database shop owner to keeper; grant pg_signal_backend to keeper');
    await to.query('drop table written');
    const { id } = await follow(to, { source: { url: address } });
    await phase(to, id, 'following');
    await app.query('insert into written values (0)');
    await waitFor('the row', async () => (await to.query('select from written where id = 0')).length === 1);
    await source.query('alter role keeper noreplication');
    await finish(to, id, { make_source_read_only: true });
    expect(await to.imports.ended(id)).toMatchObject({
      ...{ status: 'completed', source_slot: `platform_${id}` },
      status_reason: expect.stringMatching(/could not be removed.*The source refuses: /),
    });
    await expect(app.query('select 1')).rejects.toThrow();
    await source.query('begin read write; alter role keeper replication; commit; select 1');
    await hall.call('POST', `${to.imports.place}/${id}/cancel`);
    await waitFor('no slot', async () => (await source.leftovers()).length === 0, 60_000);
    await waitFor('the import', async () => (await to.imports.get(id)).source_slot === null);
    expect(await to.imports.get(id)).toMatchObject({ status: 'completed', status_reason: null });
    await to.close();
  });

  test('a hostile source gets no password that is not its own, and holds nothing up', async () => {
    const to = await target('hostile');
    process.env.PGPASSWORD = 'of the platform';
    try {
      for (const [kind, reason] of [
        ['malformed', /The source does not answer/],
        ['endless', /more than it may have to say/],
        ['oversized', /more than 64 MB/],
        ['silent', /canceled/],
      ] as const) {
        const hostile = await startHostileSource(kind);
        const { id } = await follow(to, { source: { url: hostile.address } });
        await waitFor('a question', async () => hostile.questions() > 0);
        if (kind === 'silent') await hall.call('POST', `${to.imports.place}/${id}/cancel`);
        const begun = Date.now();
        expect((await to.imports.ended(id)).status_reason).toMatch(reason);
        expect(Date.now() - begun).toBeLessThan(30_000);
        expect(new Set(hostile.passwords)).toEqual(new Set(['']));
        await hostile.stop();
      }
    } finally {
      delete process.env.PGPASSWORD;
    }
    await to.close();
  });
});
