// The golden files are those of the sources: what changes outside shows in review.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { openControlDatabase, type ControlDatabase } from '../../db/control_database';
import { named } from '../../db/statement';
import { allKinds } from '../../models/base/kinds';
import { errors } from '../../core/errors';
import { goldenFiles } from '../../tools/scripts/golden_files';
import { createTestDatabase, type TestDatabase } from '../support/databases/database';
import { core } from '../support/world';

let test: TestDatabase;
let database: ControlDatabase;
let files: Record<string, string>;

const run = <Row = object>(text: string): Promise<Row[]> => database.query<Row>(named(text), []);

beforeAll(async () => {
  test = await createTestDatabase();
  database = openControlDatabase(test.url, { poolSize: 2 });
  files = await goldenFiles(core, run);
});

afterAll(async () => {
  await database.close();
  await test.drop();
});

it.each(['built.tsv', 'schema.graphql', 'openapi.yaml', 'schema.sql'])(
  'test/golden/%s is up to date (npm run golden)',
  (name) => {
    expect(files[name]).toEqual(readFileSync(path.resolve(__dirname, '../golden', name), 'utf8'));
  },
);

/** Rows that the platform writes, and nobody changes. */
const NEVER_CHANGED: Record<string, string[]> = {
  activity: ['id', 'created_at'],
  check_result: ['id', 'checked_at'],
  incident: ['id', 'started_at'],
  registry_image: ['id', 'pushed_at'],
};

describe('the database', () => {
  it('uses no extension', async () => {
    expect(await run('select extname from pg_extension')).toEqual([{ extname: 'plpgsql' }]);
  });

  it('has a table for each kind, with the columns that every kind has', async () => {
    const rows = await run<{ table_name: string; columns: string[] }>(
      `select table_name, array_agg(column_name::text) as columns from information_schema.columns
        where table_schema = 'public' group by table_name`,
    );
    const tables = new Map(rows.map((row) => [row.table_name, row.columns]));
    for (const { kind, table } of allKinds()) {
      const wanted = NEVER_CHANGED[kind] ?? ['id', 'version', 'created_at', 'updated_at'];
      expect([kind, tables.get(table)]).toEqual([kind, expect.arrayContaining(wanted)]);
      if (kind !== 'project') expect([kind, tables.get(table)]).toEqual([kind, expect.arrayContaining(['project_id'])]);
    }
  });

  it('names its constraints and indexes after errors that exist', async () => {
    const rows = await run<{
      name: string;
    }>(`select conname as name from pg_constraint where connamespace = 'public'::regnamespace and contype <> 'n'
      union select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'i'`);
    const coded = rows.map(({ name }) => name).filter((name) => name.includes('__'));
    expect(coded.length).toBeGreaterThan(3);
    expect(coded.filter((name) => !((name.split('__')[1] as string) in errors))).toEqual([]);
  });

  it('compares ids and names by bytes', async () => {
    const rows = await run<{
      place: string;
    }>(`select c.relname || '.' || a.attname as place from pg_attribute a join pg_class c on c.oid = a.attrelid
      join pg_collation l on l.oid = a.attcollation
      where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attname = 'id' and a.attnum > 0
        and l.collname <> 'C'`);
    expect(rows).toEqual([]);
  });

  it('keeps times in milliseconds with a zone', async () => {
    const rows = await run<{
      place: string;
    }>(`select table_name || '.' || column_name as place from information_schema.columns
      where table_schema = 'public' and table_name <> 'knex_migrations' and data_type like 'timestamp%'
        and (data_type <> 'timestamp with time zone' or datetime_precision <> 3)`);
    expect(rows).toEqual([]);
  });
});
