// To whom the tables of PostgreSQL belong, on servers of now and of before.
import type { DatabaseServer } from '../../../../drivers/database';
import { inSession } from '../../../../drivers/database/postgresql/session';
import { serverDirectoryOf } from '../../../../drivers/hosted_server/server_directory';
import { ctx } from '../../../support/databases/database_server';
import { openEngineTrial, postgresqlSpec, refusal, rows, untilDone, type EngineTrial } from '../../../support/engines';
import { fileNeeds } from '../../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(120_000);

const ownersOf = (...tables: string[]): string =>
  `select distinct relowner::regrole::text as owner from pg_class where relname in ('${tables.join("', '")}')`;

describe('tables of PostgreSQL', () => {
  let one: EngineTrial;
  let spec: DatabaseServer;
  const reader = { username: 'reader', password: 'readers-word', access: 'read_only' as const };
  const second = { username: 'second', password: 'seconds-word', access: 'admin' as const };
  const as = ({ username, password }: { username: string; password: string }) => ({ user: username, password });

  beforeAll(async () => {
    one = await openEngineTrial();
    spec = postgresqlSpec('18', one.firstPort);
    spec.users.push(reader, second);
    await untilDone((context) => one.driver.ensure(spec, context));
  });
  afterAll(async () => {
    await one.close();
    expect(one.trial.errors).toEqual([]);
  });

  test('admins are one owner; default privileges may name it', async () => {
    await rows(spec, 'create table of_app (id int)');
    await rows(
      spec,
      `alter table of_app add column note text; alter table of_app owner to app;
        alter default privileges for role app in schema public grant insert on tables to reader;
        create table of_second (id int)`,
      as(second),
    );
    await rows(spec, 'alter table of_second add column note text; comment on table of_second is null');
    expect(await refusal(spec, as(reader), 'insert into of_second (id) values (1)')).toBeNull();
    expect(await refusal(spec, as(reader), 'insert into of_app (id) values (1)')).toBe('42501');
    expect(await rows(spec, ownersOf('of_app', 'of_second'))).toEqual([{ owner: 'app' }]);
    await rows(
      spec,
      'alter default privileges for role app in schema public revoke insert on tables from reader; drop table of_app',
    );
    await rows(spec, 'drop table of_second', as(second));
  });

  test('a server of before, in which a role of the platform owns all, goes on', async () => {
    const target = { serverDirectory: serverDirectoryOf(one, spec.id), spec };
    const asBefore = (user: string): string => `alter role ${user} in database app set role = platform_owner`;
    await inSession(target, {}, (session) => session.query(`${asBefore('app')}; ${asBefore('second')}`));
    await rows(spec, 'create table of_before (id int)');
    expect(await rows(spec, ownersOf('of_before'))).toEqual([{ owner: 'platform_owner' }]);
    await one.driver.ensure(spec, ctx());
    await rows(spec, 'alter table of_before add column note text', as(second));
    await rows(spec, 'drop table of_before');
    expect(await rows(spec, 'select current_user::text as name', as(second))).toEqual([{ name: 'app' }]);
  });
});
