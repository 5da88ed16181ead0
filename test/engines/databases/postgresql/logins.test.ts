// The second login that a user of PostgreSQL has for a new password: whether it is equal to the first.
import type { DatabaseServer, ServerUser } from '../../../../drivers/database';
import { sessionUserUse } from '../../../../drivers/database/postgresql/second_logins';
import { inSession } from '../../../../drivers/database/postgresql/session';
import { serverDirectoryOf } from '../../../../drivers/hosted_server/server_directory';
import { serverLogins } from '../../../../models/databases/database_user/logins';
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

const as = (user: string, password: string): { user: string; password: string } => ({ user, password });

describe('logins of a rotation', () => {
  let one: EngineTrial;
  let before: DatabaseServer;
  let during: DatabaseServer;
  const newLogin = (name: string): { user: string; password: string } => as(`${name}.1`, `new-word-of-${name}`);
  const ensure = (spec: DatabaseServer): Promise<unknown> => untilDone((context) => one.driver.ensure(spec, context));

  beforeAll(async () => {
    one = await openEngineTrial();
    before = postgresqlSpec('18', one.firstPort);
    const [app] = before.users as [ServerUser];
    before.users.push({ username: 'boss', password: 'word-of-boss', access: 'admin' });
    before.users.push({ username: 'reports', password: 'word-of-reports', access: 'read_only' });
    before.users.push({ username: 'shop', password: 'word-of-shop', access: 'read_write' });
    during = {
      ...before,
      users: [app, ...before.users.slice(1)].flatMap(({ username, password, access }) =>
        serverLogins({
          ...{ username, access, password: `new-word-of-${username}`, login: `${username}.1` },
          ...{ previous_password: password, previous_login: null },
        }),
      ),
    };
    await ensure(before);
  });
  afterAll(async () => {
    await one.close();
    expect(one.trial.errors).toEqual([]);
  });

  test('what holds for the user holds for its new login', async () => {
    await rows(
      before,
      `create schema private; create table private.orders (id int, tenant name default current_user, secret text);
        insert into private.orders values (1, 'reports', 's'), (2, 'app', 's');
        alter table private.orders enable row level security, force row level security;
        create policy own on private.orders to reports using (tenant = current_user);
        create policy of_app on private.orders to app using (tenant = current_user);
        grant usage on schema private to reports; revoke all on private.orders from reports, platform_readers;
        grant select (id, tenant) on private.orders to reports;
        create function private.f() returns int language sql return 1;
        revoke execute on function private.f() from public;
        grant execute on function private.f() to reports;
        alter role app set search_path = "$user", private, "odd,na""me"; alter role app set timezone = 'Europe/Berlin';
        alter role app set statement_timeout = '7s'; alter role app set application_name = 'a'';b "c" \\ {,role=boss}';
        alter role app in database app set work_mem = '5MB';
        alter default privileges for role app in schema private grant update on tables to shop`,
    );
    await rows(before, `alter role reports set timezone = 'Asia/Tokyo'`, as('reports', 'word-of-reports'));
    const settings = `select current_user::text, current_setting('search_path') as path,
      current_setting('timezone') as zone,
      current_setting('statement_timeout') as timeout, current_setting('application_name') as text,
      current_setting('work_mem') as memory`;
    const expected = await rows(before, settings);
    expect(expected).toMatchObject([{ zone: 'Europe/Berlin', timeout: '7s', memory: '5MB', current_user: 'app' }]);
    await ensure(during);
    expect(await rows(during, settings, newLogin('app'))).toEqual(expected);
    expect(await rows(during, 'select id from orders order by id', newLogin('app'))).toEqual([{ id: 2 }]);
    expect(await rows(during, settings, newLogin('boss'))).toMatchObject([{ current_user: 'app', zone: 'UTC' }]);
    const reader = newLogin('reports');
    expect(
      await rows(
        during,
        `select id, private.f() as f, current_setting('timezone') as zone from private.orders`,
        reader,
      ),
    ).toEqual([{ id: 1, f: 1, zone: 'Asia/Tokyo' }]);
    expect(await refusal(during, reader, 'select secret from private.orders')).toBe('42501');
    await rows(during, 'create table private.later (id int)', newLogin('app'));
    await rows(during, 'create table private.of_boss (id int)', newLogin('boss'));
    expect(await refusal(during, newLogin('shop'), 'select 1')).toBeNull();
    expect(
      await rows(
        during,
        `select distinct relowner::regrole::text as owner from pg_class where relname in ('later', 'of_boss')`,
      ),
    ).toEqual([{ owner: 'app' }]);
    expect(await rows(during, `select has_table_privilege('shop', 'private.later', 'update') as may`)).toEqual([
      { may: true },
    ]);
  });

  test('a pool that resets its connections stays the user', async () => {
    for (const reset of [
      'discard all',
      'reset all',
      'reset role',
      'reset session authorization',
      'set role none; reset role',
    ]) {
      const name = await asUser(during, newLogin('app'), async (client) => {
        await client.query(reset);
        return (await client.query<{ name: string }>('select current_user::text as name')).rows[0]?.name;
      });
      expect([reset, name]).toEqual([reset, 'app']);
    }
  });

  test('a setting that is changed later reaches the login with the next pass, and one of its own goes', async () => {
    await rows(during, `alter role app set timezone = 'America/Lima'; alter role app in database app reset work_mem`);
    await rows(during, `set role none; alter role "app.1" set lock_timeout = '1s'`, newLogin('app'));
    await ensure(during);
    expect(
      await rows(
        during,
        `select current_setting('timezone') as zone, current_setting('lock_timeout') as wait`,
        newLogin('app'),
      ),
    ).toEqual([{ zone: 'America/Lima', wait: '0' }]);
  });

  test('nothing in the database names the login, so that a dump is restored elsewhere', async () => {
    await rows(
      during,
      `set role none; create table private.stray (id int);
      alter default privileges grant select on tables to reports`,
      newLogin('app'),
    );
    await ensure(during);
    const named = `select classid::regclass::text as kind, deptype from pg_shdepend
      join pg_roles r on r.oid = refobjid where rolname like '%.1' and deptype <> 'm'
        and classid <> 'pg_auth_members'::regclass`;
    expect(await rows(during, named)).toEqual([]);
    expect(await rows(during, `select relowner::regrole::text as owner from pg_class where relname = 'stray'`)).toEqual(
      [{ owner: 'app' }],
    );
  });

  test('what a login of before owned belongs to its user when the login goes', async () => {
    await rows(during, 'set role none; create table private.left_over (id int)', newLogin('app'));
    await ensure(before);
    expect(
      await rows(before, `select relowner::regrole::text as owner from pg_class where relname = 'left_over'`),
    ).toEqual([{ owner: 'app' }]);
    expect(await refusal(before, newLogin('app'))).toBe('28P01');
  });

  test('code that would tell the logins apart is found, wherever it stands', async () => {
    const target = { serverDirectory: serverDirectoryOf(one, before.id), spec: before };
    const found = (): Promise<unknown> => inSession(target, { database: 'app' }, sessionUserUse);
    expect(await found()).toBeNull();
    await rows(before, 'create schema code; create table code.t (id int, who name); set search_path = code');
    const cases: [string, string, string][] = [
      [
        'create function code.f() returns name language plpgsql as $$ begin return session_user; end $$',
        'drop function code.f',
        'the function code.f()',
      ],
      [
        'create function code.f() returns name begin atomic select session_user; end',
        'drop function code.f',
        'the function code.f()',
      ],
      [
        'create policy "of; him" on code.t using (who = session_user)',
        'drop policy "of; him" on code.t',
        'the policy "of; him" of code.t',
      ],
      ['create view code.v as select session_user', 'drop view code.v', 'the view code.v'],
      [
        'alter table code.t alter who set default session_user',
        'alter table code.t alter who drop default',
        'a default of code.t',
      ],
      [
        'alter table code.t add constraint c check (who = session_user)',
        'alter table code.t drop constraint c',
        'a constraint of code.t',
      ],
    ];
    for (const [make, drop, object] of cases) {
      await rows(before, make);
      expect([make, await found()]).toEqual([make, expect.stringContaining(`${object} asks for session_user`)]);
      await rows(before, drop);
    }
    await rows(before, 'create view code.v as select current_user, user');
    expect(await found()).toBeNull();
  });

  test('a user that drops all it owns leaves the rights of the others on its later tables', async () => {
    await rows(before, 'create table public.first (id int)');
    expect(await refusal(before, as('reports', 'word-of-reports'), 'select id from public.first')).toBeNull();
    await rows(
      before,
      `drop owned by current_user cascade; drop schema public cascade; create schema public;
      alter default privileges grant select on tables to reports; create table public.between (id serial)`,
    );
    await one.driver.ensure(before, ctx());
    await rows(before, 'create table public.later (id serial)');
    for (const table of ['between', 'later']) {
      expect(await refusal(before, as('reports', 'word-of-reports'), `select id from public.${table}`)).toBeNull();
      expect(
        await refusal(before, as('shop', 'word-of-shop'), `insert into public.${table} default values`),
      ).toBeNull();
    }
    await rows(before, 'drop owned by platform_owner cascade');
    await one.driver.ensure(before, ctx());
    expect(await refusal(before, as('reports', 'word-of-reports'), 'select id from public.later')).toBeNull();
  });
});
