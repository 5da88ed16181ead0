/** @tier heavy @quarter 4 @covers drivers/database/postgresql */
// Upgrades of databases as people have them, compared object by object and row by row.
import { existsSync } from 'node:fs';
import type { DatabaseServer } from '../../../../drivers/database';
import {
  differencesOf,
  oddName,
  odditiesOfSecond,
  odditiesSql,
  portraitOf,
} from '../../../support/databases/postgresql_oddities';
import { ctx } from '../../../support/databases/database_server';
import { openEngineTrial, postgresqlSpec, refusal, rows, untilDone, type EngineTrial } from '../../../support/engines';
import { fileNeeds } from '../../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(240_000);

const version = '15';
const isThere = existsSync(`/usr/lib/postgresql/${version}/bin/pg_dump`);
const second = { username: 'second', password: 'seconds-word', access: 'admin' as const };
const reader = { username: 'reader', password: 'readers-word', access: 'read_only' as const };

(isThere || process.env.CI ? describe : describe.skip)(`upgrades from PostgreSQL ${version}`, () => {
  let one: EngineTrial;
  const upgrade = (spec: DatabaseServer) =>
    untilDone((context) => one.driver.upgrade({ ...spec, version: '18' }, version, context));

  async function serverWith(offset: number, sql: string): Promise<DatabaseServer> {
    const spec = { ...postgresqlSpec(version, one.firstPort + offset), id: `db_odd_${offset}`, tenant: 40 + offset };
    spec.users.push(second, reader);
    spec.size.cpus = 2;
    await untilDone((context) => one.driver.ensure(spec, context));
    await rows(spec, sql);
    return spec;
  }

  beforeAll(async () => {
    one = await openEngineTrial();
  });
  afterAll(async () => {
    await one.close();
    expect(one.trial.errors).toEqual([]);
  });

  test.each(['qualified', 'unqualified'] as const)('a database of oddities is the same, names %s', async (names) => {
    const offset = names === 'qualified' ? 0 : 1;
    const spec = await serverWith(offset, odditiesSql(names));
    await rows(
      spec,
      `alter role app set search_path = "$user", public, ${`"${oddName.replaceAll('"', '""')}"`};
        alter role app set statement_timeout = '65s'; alter role app in database app set timezone = 'Europe/Berlin';
        alter role app set default_text_search_config = 'public.conf'`,
    );
    await rows(spec, odditiesOfSecond, { user: second.username, password: second.password });
    // A former admin owns a table in a schema in which it may create no more.
    spec.users[1] = { ...second, access: 'read_only' };
    await untilDone((context) => one.driver.ensure(spec, context));
    const before = await portraitOf(one, spec);
    await upgrade(spec);
    const newer = { ...spec, version: '18' };
    expect(differencesOf(before, await portraitOf(one, newer))).toEqual([]);
    expect(await rows(newer, "select current_setting('server_version_num')::int / 10000 as major")).toEqual([
      { major: 18 },
    ]);
    // The application works on.
    await rows(
      newer,
      'insert into a values (2, 1); insert into parent values (99, now()); refresh materialized view m2',
    );
    if (names === 'unqualified') {
      await rows(
        newer,
        "insert into articles (title) values ('Übung macht den Meister'); insert into words values ('x')",
      );
      expect(await rows(newer, "select slug from articles where plain(title) = 'ubung macht den meister'")).toEqual([
        { slug: 'ubung-macht-den-meister' },
      ]);
      await rows(newer, 'reindex table articles; analyze articles; refresh materialized view titles');
    }
    await one.driver.remove(spec.id, ctx());
  });

  test('rows that their checks do not allow any more are copied, and the checks hold for others', async () => {
    const spec = await serverWith(
      2,
      `create table limits (value int); insert into limits values (10);
        create function top() returns int language sql as 'select value from public.limits';
        create domain small as int check (value < public.top());
        create table zoned (id int check (id < public.top()), d small, ds small[]);
        create table zoned_child (check (id is not null)) inherits (zoned);
        create table zoned_parts (id int, at timestamptz, constraint soon check (at > now())) partition by list (id);
        create table zoned_part partition of zoned_parts for values in (1);
        alter table zoned_part add constraint own check (id < public.top()) not valid;
        comment on constraint soon on zoned_parts is 'a comment';
        comment on constraint small_check on domain small is 'b';
        insert into zoned values (5, 5, '{5}'); insert into zoned_child values (6, 6, null);
        insert into zoned_parts values (1, now() + interval '1 second'); update limits set value = 3;
        select pg_sleep(1)`,
    );
    const before = await portraitOf(one, spec);
    await upgrade(spec);
    const newer = { ...spec, version: '18' };
    expect(differencesOf(before, await portraitOf(one, newer))).toEqual([]);
    expect(await refusal(newer, {}, 'insert into zoned values (5)')).toBe('23514');
    expect(await refusal(newer, {}, 'insert into zoned values (1, 4)')).toBe('23514');
    expect(await refusal(newer, {}, 'insert into zoned_parts values (1, now())')).toBe('23514');
    await one.driver.remove(spec.id, ctx());
  });

  test('what cannot be copied is named, and the old version goes on', async () => {
    const spec = await serverWith(
      3,
      `create table changing (kind int); insert into changing values (1), (2);
        create function normal(int) returns int immutable language sql as 'select $1';
        create unique index one_of_a_kind on changing (public.normal(kind));
        create or replace function normal(int) returns int immutable language sql as 'select 1'`,
    );
    await expect(upgrade(spec)).rejects.toMatchObject({
      reason: 'invalid',
      message:
        'The data of this database could not be copied to the new version (could not create unique index ' +
        '"one_of_a_kind", at: CREATE UNIQUE INDEX one_of_a_kind ON public.changing USING btree ' +
        '(public.normal(kind));). Change what is named, then upgrade again.',
    });
    expect(await rows(spec, 'select kind from changing')).toEqual([{ kind: 1 }, { kind: 2 }]);
    expect(await one.driver.observe(spec, ctx())).toMatchObject({ state: 'running', differs: null });
    await one.driver.remove(spec.id, ctx());
  });
});
