/** @tier heavy @quarter 2 @covers drivers/database/postgresql */
// A tenant whose names, values and code try to gain rights at each moment at which the platform works in its server.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import type { DatabaseServer } from '../../../../drivers/database';
import { ctx } from '../../../support/databases/database_server';
import { inSession } from '../../../../drivers/database/postgresql/session';
import { serverDirectoryOf } from '../../../../drivers/hosted_server/server_directory';
import { openEngineTrial, postgresqlSpec, rows, untilDone, type EngineTrial } from '../../../support/engines';
import { fileNeeds } from '../../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(240_000);

const version = '15';
const isThere = existsSync(`/usr/lib/postgresql/${version}/bin/pg_basebackup`);
const hostileName = `x"; alter role app superuser; -- '; alter role app superuser; --`;

// Each way to more rights by itself; whoever runs it, the caller goes on.
const gain = `
create function gain() returns boolean language plpgsql as $$
declare way text;
begin
  foreach way in array array[
    'alter role app superuser', 'alter role app createrole bypassrls replication',
    'reset role', 'alter role app superuser', 'reset session authorization', 'alter role app superuser',
    'set session authorization platform_admin', 'alter role app superuser', 'set role platform_admin',
    'alter role app superuser', 'grant pg_execute_server_program, pg_write_server_files to app',
    'grant platform_admin to app', 'update pg_catalog.pg_authid set rolsuper = true',
    $w$copy (select 1) to program 'touch ran_by_tenant'$w$, $w$alter system set log_min_messages = 'panic'$w$,
    'alter role platform_loader superuser', 'alter role platform_owner superuser'] loop
    begin execute way; exception when others then null; end;
  end loop;
  return true;
end $$;
create function gain_unseen(anything anyelement) returns anyelement immutable language plpgsql as $$
  begin perform public.gain(); return anything; end $$;
create function gain_folded() returns int immutable language plpgsql as $$
  begin perform public.gain(); return 1; end $$;`;

// Code that runs when rows are written, when objects are made, and while the server parses or plans a statement.
const content = `
create table checked (id int, check (gain()));
insert into checked values (1);
create domain hostile as int check (gain());
create table of_domain (id hostile default 1, ids hostile[]);
insert into of_domain values (1, '{1,2}');
create table generated (id int, twice int generated always as (gain_unseen(id) * 2) stored);
insert into generated values (1);
create index on generated (gain_unseen(id)) where id + gain_folded() > 0;
create statistics generated_statistics on (gain_unseen(id)), id from generated;
create table parted (id int) partition by list ((id * gain_folded() + gain_unseen(id)));
create table part partition of parted for values in (2);
insert into parted values (1);
alter table part add constraint folded check (gain_folded() > 0) not valid;
create function gain_apart(int, int) returns float8 immutable language plpgsql as $$
  begin perform public.gain(); return 1; end $$;
create type spans as range (subtype = int, subtype_diff = gain_apart);
create table spanned (id int, span spans default '[1,2]', check (span <> '[5,6]'::spans));
insert into spanned values (1, '[3,4]');
create index on spanned using gist (span);
create type hostile_spans as range (subtype = hostile);
create table parsed (id int, ids hostile[] default '{1,2}', span hostile_spans default '[1,2]',
  check (ids <> '{3}'::hostile[]));
create materialized view seen as select gain() as gained, gain_unseen(1) as unseen;
create unique index on seen (gained);
create view ruled as select 1 as id;
create rule ruled_insert as on insert to ruled do instead select gain();
create function gain_by_trigger() returns trigger language plpgsql as $$
  begin perform public.gain(); return new; end $$;
create table triggered (id int default gain_folded(), other int);
insert into triggered values (1);
create trigger hostile before insert or update or delete on triggered for each row execute function gain_by_trigger();
alter table triggered enable always trigger hostile;
alter table triggered enable row level security;
create policy hostile on triggered using (gain());
create function gain_equal(spans, text) returns boolean immutable language plpgsql as $$
  begin return public.gain(); end $$;
create operator = (leftarg = spans, rightarg = text, function = gain_equal);
create function gain_text(spans) returns text immutable language plpgsql as $$
  begin perform public.gain(); return ''; end $$;
create cast (spans as text) with function gain_text(spans) as assignment;
create table zz_late (at timestamptz, check (at > now()));
insert into zz_late values (now() + interval '1 second');
create function pg_is_in_recovery() returns boolean language sql as 'select public.gain()';
create function format(text, variadic text[]) returns text language sql as 'select public.gain()::text';
create table pg_roles (rolname text, rolsuper boolean);
create schema platform_admin;
create table platform_admin.pg_database as select 1 as oid;`;

const hostileSetting = 'public;alter/**/role/**/app/**/superuser;--';
const settings = `
select set_config('search_path', '${hostileSetting}', false);
alter role app set search_path from current;
alter role app in database app set search_path from current;
alter role app set application_name = 'x''; alter role app superuser; --';
reset search_path;`;

const rights = `
select rolname, rolsuper, rolcreaterole, rolbypassrls, rolreplication,
    (select count(*) from pg_auth_members m join pg_roles g on g.oid = m.roleid
      where m.member = r.oid and g.rolname like 'pg\\_%')::int as powers
  from pg_roles r where rolname !~ '^pg_' order by rolname`;

(isThere || process.env.CI ? describe : describe.skip)('a hostile tenant of PostgreSQL', () => {
  let one: EngineTrial;
  let spec: DatabaseServer;
  const ensure = (wanted: DatabaseServer) => untilDone((context) => one.driver.ensure(wanted, context));
  const before: unknown[] = [];

  // The names of roles and attributes are the same, and no program of the tenant ran.
  async function expectNoRights(of: DatabaseServer): Promise<void> {
    expect(await rows(of, rights.replaceAll('pg_roles', 'pg_catalog.pg_roles'))).toEqual(before);
    const ran = readdirSync(path.join(one.directory, of.id), { recursive: true }).map(String);
    expect(ran.filter((file) => file.includes('ran_by_tenant'))).toEqual([]);
  }

  beforeAll(async () => {
    one = await openEngineTrial();
    spec = postgresqlSpec(version, one.firstPort, { archive: true, replicas: [] });
    spec.users.push(
      { username: 'second', password: 'seconds-word', access: 'admin' },
      { username: 'reader', password: 'readers-word', access: 'read_only' },
    );
    await ensure(spec);
    before.push(...(await rows(spec, rights)));
    await rows(spec, gain);
    await rows(spec, content);
    const quoted = `"${hostileName.replaceAll('"', '""')}"`;
    await rows(
      spec,
      `create schema ${quoted}; create table ${quoted}.${quoted} (${quoted} int);
        comment on table ${quoted}.${quoted} is '${hostileName.replaceAll("'", "''")}';
        create table "line\nalter role app superuser;\n--" (id int);
        insert into "line\nalter role app superuser;\n--" values (1)`,
    );
    await rows(spec, settings);
  });
  afterAll(async () => {
    await one.close();
    expect(one.trial.errors).toEqual([]);
  });

  test('gains nothing when users change, passwords rotate, and the platform looks', async () => {
    spec.users[0]!.password = 'rotated-word';
    await ensure(spec);
    spec.users = spec.users.filter(({ username }) => username !== 'second');
    await ensure(spec);
    before.splice(0, before.length, ...before.filter((row) => (row as { rolname: string }).rolname !== 'second'));
    await one.driver.observe(spec, ctx());
    await one.driver.metrics(spec, ctx());
    await expectNoRights(spec);
  });

  test('loses what it had gained before', async () => {
    const target = { serverDirectory: serverDirectoryOf(one, spec.id), spec };
    await inSession(target, {}, (session) =>
      session.query('alter role app superuser createrole replication; grant pg_read_server_files to reader'),
    );
    await rows(
      spec,
      `create function public.gain_by_event() returns event_trigger language plpgsql as $$
          begin perform public.gain(); end $$;
        create event trigger "hostile ""trigger" on ddl_command_start execute function public.gain_by_event()`,
    );
    await inSession(target, {}, (session) => session.query('alter role app nosuperuser'));
    await ensure(spec);
    expect(await rows(spec, 'select from pg_event_trigger')).toEqual([]);
    await expectNoRights(spec);
  });

  test('gains nothing by a backup, a restore, a copy and a replica', async () => {
    await untilDone((context) => one.driver.backup(spec, 'bkp_hostile', context));
    const from = { id: 'rst_hostile', server_id: spec.id, backup_id: 'bkp_hostile', until: null };
    await untilDone((context) => one.driver.restore(spec, from, context));
    await expectNoRights(spec);
    const copy = { ...spec, id: 'db_hostile_copy', tenant: 31, port: spec.port + 1, archive: false };
    await untilDone((context) => one.driver.restore(copy, { ...from, id: 'rst_copy' }, context));
    await expectNoRights(copy);
    const replica: DatabaseServer = {
      ...{ ...spec, id: 'rep_hostile', tenant: 32, port: spec.port + 2, archive: false, replicas: undefined },
      replica_of: { server_id: spec.id, port: spec.port, password: spec.admin_password },
    };
    await ensure({ ...spec, replicas: [replica.id] });
    await ensure(replica);
    await untilDone((context) => one.driver.promote(replica, context));
    await ensure({ ...replica, replica_of: null });
    await expectNoRights(replica);
    for (const { id } of [copy, replica]) await one.driver.remove(id, ctx());
    await ensure(spec);
  });

  test('gains nothing by an upgrade, and has its content afterwards', async () => {
    const newer = { ...spec, version: '18' };
    await untilDone((context) => one.driver.upgrade(newer, version, context));
    await expectNoRights(newer);
    await ensure(newer);
    await expectNoRights(newer);
    expect(
      await rows(
        newer,
        'select ((select count(*) from public.checked) + (select count(*) from public.parted))::int as n',
      ),
    ).toEqual([{ n: 2 }]);
    expect(
      await rows(
        newer,
        `select setconfig from pg_db_role_setting s join pg_catalog.pg_roles r on r.oid = setrole
          where r.rolname = 'app' and setdatabase = 0`,
      ),
    ).toEqual([{ setconfig: [`search_path=${hostileSetting}`, "application_name=x'; alter role app superuser; --"] }]);
    expect(await rows(newer, "select from pg_catalog.pg_roles where rolname = 'platform_loader'")).toEqual([]);
  });
});
