// A database of oddities: what people have in theirs and what breaks dumps, and a portrait of it by which two servers
// can be compared.
import { inSession } from '../../../drivers/database/postgresql/session';
import { serverDirectoryOf } from '../../../drivers/hosted_server/server_directory';
import type { DatabaseServer } from '../../../drivers/database';
import type { EngineTrial } from '../engines';

/** A name with all that needs quotes, in 63 bytes. */
export const oddName = `Ödd "name" with 'quotes'; $$ \\ -- /* and ${'x'.repeat(18)}`;
const odd = `"${oddName.replaceAll('"', '""')}"`;

/** What search and slugs are made of: functions that name nothing by its schema. */
const unqualified = `
create extension unaccent; create extension pg_trgm; create extension hstore; create extension citext;
create function of_json(j json) returns text immutable language sql as $$ select lower(unaccent(j ->> 'a')) $$;
create function plain(text) returns text immutable language sql as $$ select lower(unaccent('unaccent', $1)) $$;
create function slug(word text) returns text immutable language plpgsql as $$
  begin return replace(plain(word), ' ', '-'); end $$;
create table articles (id serial primary key, title text not null, slug text generated always as (slug(title)) stored,
  lowered text generated always as (plain(title)) stored, tags hstore, mail citext unique, check (plain(title) <> ''));
create index articles_plain on articles (plain(title));
create index articles_search on articles using gin (plain(title) gin_trgm_ops);
create index articles_part on articles (id) where slug(title) <> '';
create type color as enum ('red', 'green', 'blue'); create table colored (c color) partition by hash (c);
create table colored_0 partition of colored for values with (modulus 2, remainder 0);
create table colored_1 partition of colored for values with (modulus 2, remainder 1);
insert into colored values ('red'), ('green'), ('blue');
create materialized view titles as select id, slug(title) as slug from articles;
create table by_slug (title text) partition by list (plain(title));
create table by_slug_a partition of by_slug for values in ('a');
create domain plain_word as text check (plain(value) = value);
create table words (word plain_word, words plain_word[] default '{a,b}');
insert into articles (title, tags, mail) select 'Ärticle ' || i, 'a=>1', i || '@example.com'
  from generate_series(1, 200) i;
create table documents (j json, a text generated always as (of_json(j)) stored);
insert into documents values ('{"a": "Ä"}'); insert into words values ('abc', '{abc}'); insert into by_slug values ('A');
refresh materialized view titles;`;

const qualified = `
create schema ${odd}; create table ${odd}.${odd} (${odd} int primary key, note text);
insert into ${odd}.${odd} values (1, E'a\\tb\\nc\\\\.'), (2, null);
create index on ${odd}.${odd} (note); comment on table ${odd}.${odd} is ${`'${oddName.replaceAll("'", "''")}'`};
create table a (id int primary key, b int); create table b (id int primary key, a int references a deferrable);
insert into a values (1, 1); insert into b values (1, 1);
alter table a add foreign key (b) references b deferrable initially deferred;
alter table b add constraint late foreign key (a) references a not valid;
create table parent (id int, at date) partition by range (at);
create table parent_2024 partition of parent for values from ('2024-01-01') to ('2025-01-01') partition by hash (id);
create table parent_2024_0 partition of parent_2024 for values with (modulus 2, remainder 0);
create table parent_2024_1 partition of parent_2024 for values with (modulus 2, remainder 1);
create table parent_rest partition of parent default; create index on parent (at);
insert into parent select i, date '2024-12-01' + i from generate_series(1, 60) i;
create type mood as enum ('sad', 'it''s ok'); create type pair as (x int, y text);
create table typed (id int generated always as identity (start 7), m mood default 'sad', p pair, ps pair[],
  f float8, t timestamptz default now(), r int4range, j jsonb, b bytea, x xml);
insert into typed (m, p, ps, f, r, j, b, t, x) values ('it''s ok', '(1,"a,b")', '{"(1,a)"}', 'NaN', '[1,5)',
  '{"a": [1, null]}', decode(repeat('00ff', 500000), 'hex'), 'infinity', '<a/>'),
  (null, null, null, '-Infinity', 'empty', 'null', '', '4713-01-01 BC', null);
create unlogged table unlogged (id int); insert into unlogged values (1);
create view v1 as select id, b from a; create view v2 with (security_barrier) as select * from v1 where id > 0;
create materialized view m1 as select * from v2; create materialized view m2 as select * from m1 with no data;
create index on m1 (id); comment on materialized view m1 is 'view of a view';
create rule v1_insert as on insert to v1 do instead insert into a values (new.id, new.b);
create function failing() returns trigger language plpgsql as $$ begin raise exception 'never'; end $$;
create table failing_table (id int); insert into failing_table values (1);
create trigger failing before insert or update or delete on failing_table for each row execute function failing();
alter table failing_table enable always trigger failing;
create table policed (id int, owner text default current_user); insert into policed values (1), (2);
alter table policed enable row level security; alter table policed force row level security;
create policy own on policed using (owner = current_user) with check (id > 0);
create collation german from "C"; create table sorted (t text collate german, u text collate "C");
create aggregate total(int) (sfunc = int4pl, stype = int, initcond = '0');
create function secured() returns int security definer language sql set search_path = pg_catalog set work_mem = '8MB'
  begin atomic select 1; end;
revoke execute on function secured() from public; create procedure nothing() language sql as 'select 1';
create statistics a_statistics (dependencies) on id, b from a; alter table a alter b set statistics 500;
create text search dictionary dict (template = simple, stopwords = english);
create text search configuration conf (copy = english); create sequence counted start 5 increment 3;
select nextval('counted'); alter table parent_rest set (fillfactor = 70, autovacuum_enabled = off);
create operator === (leftarg = int, rightarg = int, function = int4eq); create cast (pair as mood) with inout;
select lo_create(4242); select lo_put(4242, 0, 'large'); comment on large object 4242 is 'a large object';
grant select on large object 4242 to reader; create publication pub for table a;
grant select (id) on failing_table to reader; grant usage on schema ${odd} to reader;
grant select on a to second with grant option;
revoke select on b from platform_readers; grant create on schema tools to reader;
alter default privileges for role app in schema tools grant select on tables to reader with grant option;
alter default privileges for role app revoke execute on functions from public;
create function with_path() returns text language sql set search_path = tools, public
  as 'select word from stop_words';`;

/** Run as the first user. `names`: whether functions name what they use with its schema. */
export function odditiesSql(names: 'qualified' | 'unqualified'): string {
  return `create schema tools; create table tools.stop_words (word text); ${qualified}
    ${names === 'unqualified' ? unqualified : ''}`;
}

/** Run as a further admin called second, after the rest. */
export const odditiesOfSecond = `set role none; create table of_second (id int primary key);
  create index on of_second (id) where id > 0; grant select on a to reader`;

// Definitions as the server writes them; those of views and rules it writes otherwise in each version.
const catalogs: Record<string, string> = {
  schemas: `select n.nspname, n.nspowner::regrole, n.nspacl from pg_namespace n
      where n.oid >= 16384 or nspname = 'public'`,
  relations: `select c.oid::regclass, c.relkind, c.relowner::regrole, c.relacl, c.reloptions, c.relpersistence,
      c.relrowsecurity, c.relforcerowsecurity, c.relispopulated, pg_get_expr(c.relpartbound, c.oid),
      pg_get_partkeydef(c.oid) from pg_class c where c.oid >= 16384 and c.relkind <> 't'
      and c.relnamespace <> 'pg_toast'::regnamespace`,
  columns: `select a.attrelid::regclass, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
      a.attgenerated, a.attacl, a.attcollation::regcollation, coalesce(nullif(a.attstattarget, -1), -1),
      pg_get_expr(d.adbin, d.adrelid) from pg_attribute a join pg_class c on c.oid = a.attrelid
      left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where a.attrelid >= 16384 and a.attnum > 0 and c.relnamespace <> 'pg_toast'::regnamespace`,
  constraints: `select conname, conrelid::regclass, contypid::regtype, pg_get_constraintdef(oid), convalidated
      from pg_constraint where oid >= 16384 and contype <> 'n'`,
  indexes: `select pg_get_indexdef(indexrelid), indisvalid from pg_index join pg_class c on c.oid = indrelid
      where indexrelid >= 16384 and c.relnamespace <> 'pg_toast'::regnamespace`,
  functions: `select p.oid::regprocedure, p.proowner::regrole, p.proacl,
      case when p.prokind <> 'a' then
        regexp_replace(pg_get_functiondef(p.oid), E'\\n SET search_path TO [^\\n]*', '') end
      from pg_proc p where p.oid >= 16384 and not exists (select from pg_depend where objid = p.oid and deptype = 'e')`,
  triggers: `select pg_get_triggerdef(oid), tgenabled from pg_trigger where not tgisinternal`,
  policies: `select polname, polrelid::regclass, polcmd, pg_get_expr(polqual, polrelid),
      pg_get_expr(polwithcheck, polrelid) from pg_policy`,
  types: `select t.oid::regtype, typtype, typowner::regrole, (select array_agg(enumlabel order by enumsortorder)
      from pg_enum where enumtypid = t.oid) from pg_type t
      where t.oid >= 16384 and typnamespace <> 'pg_toast'::regnamespace`,
  statistics: `select pg_get_statisticsobjdef(oid) from pg_statistic_ext`,
  extensions: `select extname, extnamespace::regnamespace from pg_extension`,
  default_privileges: `select defaclrole::regrole, defaclnamespace::regnamespace, defaclobjtype, defaclacl
      from pg_default_acl`,
  large_objects: `select m.oid, lomowner::regrole, lomacl, md5(lo_get(m.oid)) from pg_largeobject_metadata m`,
  comments: `select i.type, i.identity, d.description from pg_description d,
      pg_identify_object(d.classoid, d.objoid, d.objsubid) i where d.objoid >= 16384`,
  sequences: `select schemaname, sequencename, last_value, start_value, increment_by from pg_sequences`,
  others: `select i.type, replace(i.identity, 'pg_catalog.', '') from (select 'pg_operator'::regclass as c, oid
      from pg_operator union all
      select 'pg_cast'::regclass, oid from pg_cast union all select 'pg_collation'::regclass, oid from pg_collation
      union all select 'pg_ts_dict'::regclass, oid from pg_ts_dict union all select 'pg_ts_config'::regclass, oid
      from pg_ts_config union all select 'pg_publication'::regclass, oid from pg_publication union all
      select 'pg_rewrite'::regclass, oid from pg_rewrite) o, pg_identify_object(o.c, o.oid, 0) i where o.oid >= 16384`,
  settings: `select r.rolname, d.datname, s.setconfig from pg_db_role_setting s left join pg_roles r on r.oid = setrole
      left join pg_database d on d.oid = s.setdatabase`,
  members: `select r.rolname, u.rolname, m.admin_option from pg_auth_members m join pg_roles r on r.oid = m.roleid
      join pg_roles u on u.oid = m.member where u.rolname !~ '^pg_'`,
};

/** Everything in the database that can be compared, as sorted lines by catalog; of tables their rows. */
export async function portraitOf(one: EngineTrial, spec: DatabaseServer): Promise<Record<string, string[]>> {
  const target = { serverDirectory: serverDirectoryOf(one, spec.id), spec };
  return inSession(target, { database: spec.database_name ?? 'app' }, async (session) => {
    const portrait: Record<string, string[]> = {};
    for (const [name, query] of Object.entries(catalogs)) {
      const { rows } = await session.query<unknown[]>({ text: query, rowMode: 'array' });
      portrait[name] = rows.map((row) => JSON.stringify(row.map(sorted))).sort();
    }
    const { rows: tables } = await session.query<{ name: string }>(
      `select format('%s.%I', relnamespace::regnamespace, relname) as name from pg_class
        where oid >= 16384 and (relkind = 'r' or relkind = 'm' and relispopulated)`,
    );
    const contents: string[] = [];
    await session.query('set search_path = pg_catalog, public'); // planning reads expressions of indexes
    for (const { name } of tables) {
      const { rows } = await session.query<{ sum: string }>(
        `select count(*) || ' ' || coalesce(md5(string_agg(t::text, '|' order by t::text collate "C")), '') as sum
          from ${name} t`,
      );
      contents.push(`${name} ${rows[0]?.sum}`);
    }
    return { ...portrait, contents: contents.sort() };
  });
}

/** What one has and the other lacks; nothing where they are the same. */
export function differencesOf(before: Record<string, string[]>, after: Record<string, string[]>): string[] {
  const lacking = (sign: string, all: Record<string, string[]>, others: Record<string, string[]>) =>
    Object.entries(all).flatMap(([name, lines]) =>
      lines.filter((line) => !others[name]?.includes(line)).map((line) => `${sign} ${name} ${line}`),
    );
  return [...lacking('-', before, after), ...lacking('+', after, before)];
}

// Privileges are a set, which is kept as a list. Since version 17 owners have one more, to maintain.
function sorted(value: unknown): unknown {
  if (typeof value === 'string' && /^\{.*=.*\/.*\}$/.test(value))
    return value.replaceAll('=arwdDxtm/', '=arwdDxt/').slice(1, -1).split(',').sort();
  return value;
}
