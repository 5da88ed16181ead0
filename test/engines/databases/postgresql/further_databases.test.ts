// Databases that admins make beside the one of the platform.
import type { DatabaseServer } from '../../../../drivers/database';
import { inSession } from '../../../../drivers/database/postgresql/session';
import { serverDirectoryOf } from '../../../../drivers/hosted_server/server_directory';
import { ctx } from '../../../support/databases/database_server';
import {
  asUser,
  openEngineTrial,
  postgresqlSpec,
  refusal,
  rows,
  untilDone,
  type EngineTrial,
} from '../../../support/engines';
import { fileNeeds } from '../../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(120_000);

describe('further databases of a PostgreSQL server', () => {
  let one: EngineTrial;
  let spec: DatabaseServer;
  const boss = { user: 'boss', password: 'word-of-boss' };
  const reader = { user: 'reader', password: 'word-of-reader' };

  beforeAll(async () => {
    one = await openEngineTrial();
    spec = postgresqlSpec('18', one.firstPort);
    spec.users.push({ username: 'boss', password: boss.password, access: 'admin' });
    spec.users.push({ username: 'reader', password: reader.password, access: 'read_only' });
    await untilDone((context) => one.driver.ensure(spec, context));
  });
  afterAll(async () => {
    await one.close();
    expect(one.trial.errors).toEqual([]);
  });

  test('admins make them as tools do, over `postgres`; each may use what another made', async () => {
    const shadow = { database: 'Shadow "1"' };
    await rows(spec, 'create database "Shadow ""1"""', { database: 'postgres' });
    await rows(spec, 'create table notes (id int)', shadow);
    await rows(spec, 'create table of_boss (id int); drop table notes', { ...boss, ...shadow });
    expect(await rows(spec, 'select current_user::text as name', { ...boss, ...shadow })).toEqual([{ name: 'app' }]);
    await rows(spec, 'drop table of_boss', shadow);
    await rows(spec, 'create database of_boss', boss);
    await rows(spec, 'drop database of_boss; ', { database: 'postgres' });
    await rows(spec, 'drop database "Shadow ""1""" with (force)', boss);
  });

  test('nobody makes anything in the databases of the server, and others than admins make none', async () => {
    expect(await refusal(spec, { database: 'postgres' }, 'create table public.notes (id int)')).toBe('42501');
    expect(await refusal(spec, { database: 'postgres' }, 'create schema mine')).toBe('42501');
    expect(await refusal(spec, { database: 'postgres' }, 'create temporary table notes (id int)')).toBe('42501');
    expect(await refusal(spec, { database: 'template1' })).toBe('42501');
    expect(await refusal(spec, {}, 'alter database postgres rename to mine')).toBe('42501');
    expect(await refusal(spec, {}, 'create database copied template app')).toBe('42501');
    expect(await refusal(spec, { ...reader, database: 'postgres' })).toBe('42501');
    expect(await refusal(spec, reader, 'create database mine')).toBe('42501');
  });

  test('a user goes, whatever it made in other databases', async () => {
    await rows(spec, 'create database left_over');
    const own = 'set role none; grant all on schema public to public';
    await rows(spec, own, { database: 'left_over' });
    await rows(spec, 'set role none; create table mine (id int)', { ...boss, database: 'left_over' });
    await rows(spec, 'set role none; select lo_create(0)', { ...boss, database: 'postgres' });
    await asUser(spec, boss, async (client) => {
      await client.query('set role none');
      await client.query('create database closed allow_connections false');
      await client.query('create database hasty');
      await rows(spec, 'set role none; select lo_create(0)', { ...boss, database: 'hasty' });
      for (const name of ['transaction_timeout', 'idle_session_timeout', 'statement_timeout', 'lock_timeout'])
        await client.query(`alter database hasty set ${name} = '1ms'`);
    });
    await rows(spec, 'create database half_dropped');
    await rows(spec, 'set role none; select lo_create(0)', { ...boss, database: 'half_dropped' });
    await rows(spec, `create database western encoding 'LATIN1' template template0 locale_provider libc locale 'C'`);
    await rows(spec, 'create database odd');
    await rows(spec, 'set role none; select lo_create(0)', { ...boss, database: 'odd' });
    await rows(spec, 'alter database odd rename to "é"', { database: 'western' });
    const target = { serverDirectory: serverDirectoryOf(one, spec.id), spec };
    await inSession(target, {}, (session) =>
      session.query("update pg_database set datconnlimit = -2 where datname = 'half_dropped'"),
    );
    const without = { ...spec, users: spec.users.filter(({ username }) => username !== 'boss') };
    await one.driver.ensure(without, ctx());
    expect(await rows(spec, `select 1 from pg_roles where rolname = 'boss'`)).toEqual([]);
    await rows(spec, 'drop table mine', { database: 'left_over' });
    await rows(spec, 'drop database closed');
    await rows(spec, 'drop database hasty');
    const [renamed] = await rows(spec, `select datname from pg_database where datname ~ '^renamed_[0-9]+$'`);
    await rows(spec, `drop database ${renamed!.datname}`);
    await rows(spec, 'drop database western');
    await rows(spec, 'drop database left_over');
  });
});
