/** @tier heavy @quarter 2 @covers models/databases/database_import drivers/database/postgresql/imports */
// Imports into PostgreSQL: dumps of other servers, in all formats, and dumps that are meant to harm.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import pg from 'pg';
import { connect, describePostgresqlWithTools, openHall, type Hall } from '../support/databases/database_hall';
import { importsOf, type Imports } from '../support/databases/imports';

jest.setTimeout(180_000);

/* oxlint-disable typescript/no-explicit-any -- answers of the service */

const DUMP = String.raw`
--
-- PostgreSQL database dump
--
\restrict kQyY3
SET statement_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA public;
COMMENT ON EXTENSION citext IS 'data type for case-insensitive character strings';
CREATE EXTENSION IF NOT EXISTS earthdistance WITH SCHEMA public;
CREATE EXTENSION IF NOT EXISTS postgres_fdw WITH SCHEMA public;
SET default_tablespace = 'fast';
CREATE TABLE public.places (
    id integer NOT NULL,
    name public.citext DEFAULT 'a;b'::text,
    note text DEFAULT E'it\'s; fine' /* a ; /* nested */ comment */
);
ALTER TABLE public.places OWNER TO alice;
CREATE FUNCTION public.greet(who text) RETURNS text
    LANGUAGE plpgsql
    AS $_$
BEGIN
  -- ends; here
  RETURN 'hello; ' || $1;
END;
$_$;
CREATE FUNCTION public.twice(i integer) RETURNS integer
    LANGUAGE sql
    BEGIN ATOMIC
 SELECT (CASE WHEN (i > 0) THEN (i * 2) ELSE 0 END);
END;
COPY public.places (id, name, note) FROM stdin;
1	one	\\N
2	two	tab\there
3	three	line\nbreak
\.

COPY public.places (id, name, note) FROM stdin;
\.
INSERT INTO public.places VALUES (4, 'four', 'x; y');
ALTER TABLE ONLY public.places ADD CONSTRAINT places_pkey PRIMARY KEY (id);
REVOKE ALL ON TABLE public.places FROM bob;
GRANT SELECT ON TABLE public.places TO bob;
ALTER DEFAULT PRIVILEGES FOR ROLE alice IN SCHEMA public GRANT SELECT ON TABLES TO bob;
\unrestrict kQyY3
`;

const EMPTY = `do $$ declare found record; begin
  for found in select format('drop table %I cascade', tablename) as text from pg_tables where schemaname = 'public' loop
    execute found.text; end loop;
  for found in select format('drop function %s', oid::regprocedure) as text from pg_proc p
    where pronamespace = 'public'::regnamespace and proowner = current_user::regrole loop execute found.text; end loop;
  perform lo_unlink(oid) from pg_largeobject_metadata;
end $$`;

describePostgresqlWithTools(() => {
  let hall: Hall;
  let id: string;
  let address: string;
  let imports: Imports;
  let client: pg.Client;

  beforeAll(async () => {
    hall = await openHall({ ALLOW_PRIVATE_ADDRESSES: '1' });
    ({ id } = await hall.create({ name: 'target', engine: 'postgresql', engine_version: '15' }));
    imports = importsOf(hall, id);
    address = (await hall.call('GET', `/v2/databases/${id}/credentials`)).body.endpoints[0].connection_string;
    client = new pg.Client({ connectionString: address.replace('sslmode=require', 'sslmode=no-verify') });
    await client.connect();
  });
  afterAll(async () => {
    await client?.end();
    await hall?.close();
  });
  beforeEach(() => client.query(EMPTY));

  const query = async (sql: string): Promise<any[]> => (await client.query(sql)).rows;

  test('a plain dump of another server is there, and what was not taken over is said', async () => {
    const done = await imports.send(DUMP);
    expect(done).toMatchObject({ status: 'completed', status_reason: null, mode: 'copy', source_address: null });
    expect(done.tables).toEqual([{ name: 'public.places', rows_read: 4, rows: 4 }]);
    expect(done.bytes_read).toBe(Buffer.byteLength(DUMP));
    expect(await query('select id, name, note from places order by id')).toEqual([
      { id: 1, name: 'one', note: '\\N' },
      { id: 2, name: 'two', note: 'tab\there' },
      { id: 3, name: 'three', note: 'line\nbreak' },
      { id: 4, name: 'four', note: 'x; y' },
    ]);
    expect(await query(`select greet('you') as a, twice(4) as b`)).toEqual([{ a: 'hello; you', b: 8 }]);
    expect(await query(`select tableowner from pg_tables where tablename = 'places'`)).toEqual([{ tableowner: 'app' }]);
    const missing = new Map(done.not_taken_over.map((one: any) => [`${one.kind} ${one.name}`, one.reason]));
    expect([...missing.keys()].sort()).toEqual([
      'extension postgres_fdw',
      'owner alice',
      'privileges bob',
      'tablespace fast',
    ]);
    expect(missing.get('extension postgres_fdw')).toMatch(/addresses/);
    // The extension that needs a superuser is one of the database now.
    const extension = await hall.call('GET', `/v2/databases/${id}/extensions/earthdistance`);
    expect(extension.body.status).toBe('enabled');
  });

  test('an extension is in the schema that the dump names, also where the dump does not make it', async () => {
    const done = await imports.send(String.raw`
SELECT pg_catalog.set_config('search_path', '', false);
CREATE EXTENSION IF NOT EXISTS hstore WITH SCHEMA heroku_ext;
CREATE TABLE public.found (id int, more heroku_ext.hstore);
`);
    expect([done.status, done.status_reason]).toEqual(['completed', null]);
    await query('drop schema heroku_ext cascade');
  });

  test('archives of all formats are told by their content', async () => {
    await query(`create table a (id int primary key, at timestamptz default now(), t text);
      insert into a (id, t) select i, repeat('x', i % 50) from generate_series(1, 5000) i;
      create view v as select count(*) from a; select lo_from_bytea(0, 'large')`);
    const directory = mkdtempSync(path.join(tmpdir(), 'dumps-'));
    const dump = (...args: string[]) => execFileSync('pg_dump', [...args, '-d', address], { encoding: 'buffer' });
    dump('-Fd', '-f', path.join(directory, 'd'));
    const files: Record<string, Uint8Array> = {
      plain: dump('-Fp'),
      inserts: gzipSync(dump('-Fp', '--inserts', '--rows-per-insert=100')),
      clean: dump('-Fp', '-C', '--clean', '--if-exists'),
      custom: dump('-Fc'),
      gzipped: gzipSync(dump('-Fc', '-Z0')),
      tar: dump('-Ft'),
      directory: execFileSync('tar', ['-cz', '-C', directory, 'd'], { maxBuffer: 2 ** 28 }),
    };
    for (const [format, file] of Object.entries(files)) {
      await query(EMPTY);
      const done = await imports.send(file);
      expect([format, done.status, done.status_reason]).toEqual([format, 'completed', null]);
      expect([format, done.tables]).toEqual([format, [{ name: 'public.a', rows_read: 5000, rows: 5000 }]]);
      expect(await query('select count from v')).toEqual([{ count: 5000 }]);
    }
    rmSync(directory, { recursive: true });
  });

  test('a small archive, which is read in an instant, is there', async () => {
    await query('create table a (id int primary key); insert into a values (1)');
    const files = ['-Fc', '-Ft'].map((format) => execFileSync('pg_dump', [format, '-d', address]));
    for (const file of files) {
      await query(EMPTY);
      const done = await imports.send(file);
      expect([done.status, done.tables]).toEqual(['completed', [{ name: 'public.a', rows_read: 1, rows: 1 }]]);
    }
  });

  test('a failed import leaves nothing, and says the line', async () => {
    for (const [file, reason] of [
      ['create table a (i int);\n\nnot sql;\n', /^Line 3, at `not sql`: Syntax error.* Nothing was imported\.$/],
      ['create table a (i int);\ncopy a from stdin;\n1\nsecret\n\\.\n', /^Line 4, at `copy a from stdin`: .*integer/],
      ['create table a (i int);\ncopy a from stdin;\n1\n', /^Line \d: The file ends within the rows.* incomplete/],
      ["create table a (i int);\nselect 'open", /^(Line 2: )?The file ends within the statement that begins on line 2/],
      ['create table a (i int);\ncommit;\nnot sql;', /^Line 3/],
      [Buffer.from('PGDMP but no archive at all'), /The archive could not be read\./],
      [gzipSync(DUMP).subarray(0, 300), /./],
      ['', /The file is empty\./],
      [Buffer.from('504b03041400', 'hex'), /ZIP archive/],
      ['REDIS0011rest', /snapshot of Redis/],
    ] as [string | Uint8Array, RegExp][]) {
      const failed = await imports.send(file);
      expect([reason, failed.status, failed.status_reason]).toEqual([reason, 'failed', expect.stringMatching(reason)]);
      expect(failed.status_reason).not.toMatch(/secret/);
      expect(await query(`select from pg_class where relname = 'a'`)).toEqual([]);
    }
  });

  test('nothing of a stranger runs as somebody else', async () => {
    const marker = path.join(tmpdir(), `import-harm-${process.pid}`);
    for (const harm of [
      `\\! touch ${marker}`,
      `\\copy t from program 'touch ${marker}'`,
      `\\o | touch ${marker}`,
      `\\i /etc/passwd`,
      `\\g | touch ${marker}`,
      `copy t from program 'touch ${marker}';`,
      `/* x */ copy t to '${marker}';`,
      `copy (select 1) to program 'touch ${marker}';`,
    ]) {
      const failed = await imports.send(`create table t (a text);\n${harm}\n`);
      expect([harm, failed.status, failed.status_reason]).toEqual([harm, 'failed', expect.stringMatching(/^Line 2/)]);
    }
    // What hides within a statement is for the server, which refuses it.
    for (const harm of [
      `do $$ begin execute 'copy t from program ''touch ${marker}'''; end $$;`,
      `set session authorization platform_admin; create table who as select current_user as name;`,
      `set role platform_admin; create table who as select current_user as name;`,
      `reset session authorization; create table who as select current_user as name;`,
      `create role evil superuser; alter role app superuser; create table who as select current_user as name;`,
    ]) {
      await imports.send(`create table if not exists t (a text);\n${harm}\n`);
      const [who] = await query(`select to_regclass('who') as there`);
      if (who.there) expect(await query('select name from who')).toEqual([{ name: 'app' }]);
      await query('drop table if exists who; drop table if exists t');
    }
    expect(await query(`select rolname from pg_roles where rolname = 'evil' or rolsuper and rolname = 'app'`)).toEqual(
      [],
    );
    expect(() => readFileSync(marker)).toThrow(/ENOENT/);
  });

  test('rows of excluded tables are left out, and their tables are there', async () => {
    const done = await imports.send(DUMP, { exclude: ['places'] });
    expect(done).toMatchObject({ status: 'completed', tables: [] });
    expect(done.not_taken_over).toContainEqual({ kind: 'rows', name: 'public.places', reason: 'They are excluded.' });
    expect(await query('select count(*)::int as count from places')).toEqual([{ count: 0 }]);
  });

  test('a process that ends after the commit, or before it, leaves one import', async () => {
    const file = 'create table a as select generate_series(1, 10) as i;\ncopy a from stdin;\n11\n\\.\n';
    const done = await imports.send(file);
    const place = path.join(hall.databaseDir, 'imports', done.id);
    const crash = async (observed: string) => {
      mkdirSync(place, { recursive: true });
      writeFileSync(path.join(place, 'source'), file);
      const again = `status = 'running', finished_at = null, next_at = now(), generation = generation + 1`;
      await hall.service.sql(`update database_imports set ${again}, observed = ${observed} where id = $1`, [done.id]);
      return imports.ended(done.id);
    };
    expect(await crash('observed')).toMatchObject({ status: 'completed', tables: done.tables });
    expect(await query('select count(*)::int as count from a')).toEqual([{ count: 11 }]);
    await query(EMPTY);
    expect(await crash(`observed - 'transaction'`)).toMatchObject({ status: 'completed', tables: done.tables });
    expect(await query('select count(*)::int as count from a')).toEqual([{ count: 11 }]);
  });

  test('one at a time, and it can be canceled at any time', async () => {
    const first = await imports.begin();
    expect(first).toMatchObject({ status: 'awaiting_upload', upload_url: expect.stringMatching(/uploads\/databases/) });
    const second = await hall.call('POST', imports.place, { body: { source: { upload: true } } });
    expect([second.status, second.body.code]).toEqual([409, 'resource_busy']);
    expect((await imports.get(first.id)).upload_url).toBeNull();
    expect((await hall.call('POST', `${imports.place}/${first.id}/cancel`)).body.status).toBe('canceled');
    expect((await imports.put(first.upload_url, DUMP)).status).toBe(404);
    const slow = await imports.begin();
    await imports.put(slow.upload_url, `create table a as select 1 as i;\nselect pg_sleep(60);\n`);
    for (let one = slow; one.status !== 'running'; one = await imports.get(slow.id));
    expect((await hall.call('POST', `${imports.place}/${slow.id}/cancel`)).status).toBe(202);
    const ended = await imports.ended(slow.id);
    expect(ended).toMatchObject({ status: 'canceled', status_reason: 'It was canceled. Nothing was imported.' });
    expect(await query(`select from pg_class where relname = 'a'`)).toEqual([]);
    const all = await hall.call('GET', `${imports.place}?status=canceled`);
    expect(all.body.data.map((one: any) => one.id)).toEqual([slow.id, first.id]);
    expect((await hall.call('POST', `${imports.place}/${slow.id}/cancel`)).body.code).toBe('invalid_state');
    expect(id).toBe(slow.database_id);
  });

  test('a database elsewhere is copied, and addresses that are not public are refused', async () => {
    const source = await hall.create({ name: 'elsewhere', engine: 'postgresql', engine_version: '15' });
    const from = (await hall.call('GET', `/v2/databases/${source.id}/credentials`)).body.endpoints[0].connection_string;
    await connect(
      from,
      async (client) => void (await client.query('create table far as select * from generate_series(1, 1000) as i')),
    );
    const { place } = imports;
    const begun = await hall.call('POST', place, { body: { source: { url: from } } });
    expect(begun.body.source_address).toMatch(/^postgres(ql)?:\/\/127\.0\.0\.1:\d+\/app$/);
    const done = await imports.ended(begun.body.id);
    expect([done.status, done.status_reason]).toEqual(['completed', null]);
    expect(done.tables).toEqual([{ name: 'public.far', rows_read: 1000, rows: 1000 }]);
    expect(await query('select count(*)::int as count from far')).toEqual([{ count: 1000 }]);
    for (const url of [
      'ftp://example.com/x',
      'http://example.com/x',
      'file:///etc/passwd',
      'postgresql://h/x?sslrootcert=/etc/passwd',
      'postgresql://u@h/x?sslkey=/etc/shadow',
      'postgresql:///app?host=/var/run',
      'mysql://u:p@example.com/x',
    ]) {
      const { status, body } = await hall.call('POST', place, { body: { source: { url } } });
      expect([url, status, body.code]).toEqual([url, 422, 'validation_failed']);
    }
    for (const source of [{}, { upload: false }, { upload: true, url: 'https://example.com/x' }])
      expect((await hall.call('POST', place, { body: { source } })).status).toBe(422);
    await hall.remove(source.id);
  });
});
