/** @tier heavy @quarter 1 @covers drivers/database/postgresql */
// Replicas and upgrades of real PostgreSQL servers.
import { existsSync } from 'node:fs';
import type { DatabaseServer } from '../../../../drivers/database';
import { ctx } from '../../../support/databases/database_server';
import {
  asUser,
  notesOf,
  openEngineTrial,
  postgresqlSpec,
  refusal,
  rows,
  untilDone,
  type EngineTrial,
} from '../../../support/engines';
import { until } from '../../../support/builds/runtime';
import { postgresqlServers } from '../../../support/databases/hosted_servers';
import { fileNeeds } from '../../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(240_000);

const version = '15';
const isThere = existsSync(`/usr/lib/postgresql/${version}/bin/pg_basebackup`);

(isThere || process.env.CI ? describe : describe.skip)(`replicas and upgrades of PostgreSQL ${version}`, () => {
  let one: EngineTrial;
  let spec: DatabaseServer;
  let port: number;
  const ensure = (wanted: DatabaseServer) =>
    untilDone((context) => one.driver.ensure(wanted, context), wanted.replica_of ? spec : undefined);

  beforeAll(async () => {
    one = await openEngineTrial();
    port = one.firstPort;
    spec = postgresqlSpec(version, port, { archive: true, replicas: [] });
    await ensure(spec);
    await rows(spec, "create table notes (note text primary key); insert into notes values ('a')");
  });
  afterAll(async () => {
    await one.close();
    expect(one.trial.errors).toEqual([]);
  });

  test('a replica follows, reads only, and becomes a server of its own; the primary is as before', async () => {
    const primary = { ...spec, replicas: ['rep_postgresql'] };
    const replica: DatabaseServer = {
      ...spec,
      id: 'rep_postgresql',
      tenant: 13,
      port: port + 2,
      archive: false,
      replicas: undefined,
      replica_of: { server_id: spec.id, port, password: spec.admin_password },
    };
    await ensure(primary);
    await ensure(replica);
    await rows(spec, "insert into notes values ('streamed')");
    await until(async () => (await notesOf(replica)).includes('streamed'), 60_000);
    expect(await one.driver.observe(replica, ctx())).toMatchObject({
      state: 'running',
      differs: null,
      replication_lag_seconds: 0,
    });
    expect(await refusal(replica, {}, "insert into notes values ('x')")).toBe('25006');
    await untilDone((context) => one.driver.promote(replica, context));
    await untilDone((context) => one.driver.promote(replica, context));
    const promoted = { ...replica, replica_of: null };
    await ensure(promoted);
    await ensure(spec);
    await rows(promoted, "insert into notes values ('alone')");
    expect(await notesOf(spec)).not.toContain('alone');
    expect(await one.driver.observe(promoted, ctx())).toMatchObject({
      state: 'running',
      differs: null,
      replication_lag_seconds: null,
    });
    await one.driver.remove('rep_postgresql', ctx());
  });

  test('owners make all extensions that PostgreSQL trusts, and no others', async () => {
    const found = await rows(
      spec,
      `select name, bool_or(trusted) as trusted, bool_or(requires is not null) as builds_on
        from pg_available_extension_versions where name <> 'plpgsql' group by name order by name`,
    );
    const made = found.filter(({ builds_on }) => builds_on === false);
    for (const { name, trusted } of made) {
      const code = await refusal(spec, {}, `create extension "${String(name)}"`);
      expect([name, code]).toEqual([name, trusted === true ? null : '42501']);
      if (code === null) await rows(spec, `drop extension "${String(name)}"`);
    }
    expect(made.filter(({ trusted }) => trusted === true).length).toBeGreaterThan(15);
  });

  test('a long query on a replica goes on while its primary vacuums, and does not hold up replay', async () => {
    const primary = { ...spec, replicas: ['rep_reports'] };
    const replica: DatabaseServer = {
      ...{ ...spec, id: 'rep_reports', tenant: 15, port: port + 4, archive: false, replicas: undefined },
      replica_of: { server_id: spec.id, port, password: spec.admin_password },
    };
    await ensure(primary);
    await ensure(replica);
    await rows(
      spec,
      'create table sales (id int, amount int); insert into sales select g, 1 from generate_series(1, 5000) g',
    );
    const count = async (): Promise<number> => Number((await rows(replica, 'select count(*) from sales'))[0]?.count);
    await until(async () => (await count().catch(() => 0)) === 5000, 60_000);
    await asUser(replica, {}, async (report) => {
      await report.query('begin isolation level repeatable read');
      const sum = async (): Promise<number> =>
        (await report.query<{ sum: number }>('select sum(amount)::int from sales')).rows[0]!.sum;
      expect(await sum()).toBe(5000);
      const heldBack = `select 1 from pg_replication_slots where slot_name = 'rep_reports' and xmin is not null`;
      await until(async () => (await rows(spec, heldBack)).length > 0, 60_000);
      await rows(spec, 'update sales set amount = 2');
      await rows(spec, 'delete from sales where id > 10');
      await rows(spec, 'vacuum sales');
      await until(async () => (await count()) === 10, 20_000);
      expect(await sum()).toBe(5000);
      await report.query('commit');
    });
    expect(await rows(replica, `select current_setting('max_standby_streaming_delay') as delay`)).toEqual([
      { delay: '10min' },
    ]);
    await one.driver.remove('rep_reports', ctx());
    await ensure(spec);
  });

  test('an upgrade keeps data, users and rights; what it cannot do it says', async () => {
    const other = { ...postgresqlSpec(version, port + 3), id: 'db_old', tenant: 14 };
    other.users.push({ username: 'reader', password: 'readers-word', access: 'read_only' });
    await ensure(other);
    await rows(
      other,
      `create table notes (note text primary key, n serial); insert into notes select 'n' || g
        from generate_series(1, 1000) g`,
    );
    await rows(other, "set role none; alter role app set work_mem = '3MB'");
    const newer = { ...other, version: '18' };
    await expect(one.driver.ensure(newer, ctx())).rejects.toMatchObject({ reason: 'conflict' });
    await untilDone((context) => one.driver.upgrade(newer, version, context));
    expect(
      await rows(
        newer,
        `select count(*)::int as n, split_part(version(), ' ', 2)::float::int as major,
          current_setting('work_mem') as memory from notes`,
      ),
    ).toEqual([{ n: 1000, major: 18, memory: '3MB' }]);
    expect(
      await rows(newer, 'select count(*)::int as n from notes', { user: 'reader', password: 'readers-word' }),
    ).toEqual([{ n: 1000 }]);
    expect(await refusal(newer, { user: 'reader', password: 'readers-word' }, 'delete from notes')).toBe('42501');
    await ensure(newer);
    await expect(one.driver.backup(newer, 'bkp_new', ctx())).rejects.toMatchObject({
      reason: 'unsupported',
      message: expect.stringContaining('postgresql-client-18') as unknown,
    });
    await one.driver.remove(other.id, ctx());
  });

  test('an upgrade that would leave a further database behind does not begin', async () => {
    const other = { ...postgresqlSpec(version, port + 5), id: 'db_further', tenant: 16 };
    await ensure(other);
    await rows(other, 'create database kept');
    await expect(
      untilDone((context) => one.driver.upgrade({ ...other, version: '18' }, version, context)),
    ).rejects.toMatchObject({ reason: 'invalid', message: expect.stringContaining('a further database, "kept"') });
    await ensure(other);
    expect(await rows(other, 'select 1 as one', { database: 'kept' })).toEqual([{ one: 1 }]);
    await one.driver.remove('db_further', ctx());
  });

  test('an upgrade that fails leaves the old version with its data', async () => {
    const broken = { ...postgresqlSpec(version, port + 4), id: 'db_broken', tenant: 15 };
    await ensure(broken);
    await rows(broken, 'create table notes (note text); insert into notes values (1)');
    const { found } = one;
    const lacking = postgresqlServers({
      runtime: one.trial.runtime,
      directory: one.directory,
      found: found.map((each) =>
        each.series === '18' ? { ...each, path: '/nowhere/bin/postgres', source: 'system' as const } : each,
      ),
    });
    await expect(
      untilDone((context) => lacking.upgrade({ ...broken, version: '18' }, version, context)),
    ).rejects.toMatchObject({ reason: 'invalid' });
    expect(await notesOf(broken)).toEqual(['1']);
    await one.driver.remove(broken.id, ctx());
  });
});
