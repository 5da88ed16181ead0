// The release before goes on with the schema of today: while an upgrade runs, and after a way back. A migration that it
// cannot bear waits for the release after (CONTRIBUTING.md).
import { cpSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import knex, { type Knex } from 'knex';
import { migrate } from '../../db/migrate';
import { readTables, type Table } from '../../tools/scripts/golden_files';
import { freePort } from '../support/processes/free_port';
import { startProgram, type Program } from '../support/processes/program';
import { database, directory, home, setUpStarts } from '../support/processes/start_cases';
import { buildReleaseBefore, hasReleaseBefore, type ReleaseBefore } from '../support/releases/before';
import { contractionsOf, migrationNames } from '../support/releases/schema_changes';
import { openSmoke, type Smoke } from '../support/releases/smoke';
import { named } from '../support/runner/programs';
import { ROOT } from '../support/runner/repository';

jest.setTimeout(900_000);
const MIGRATIONS = path.join(ROOT, 'migrations');

const it = (
  hasReleaseBefore ? test : named(test.skip, ' (needs: the history of Git, git fetch --unshallow)')
) as jest.It;

setUpStarts();
let before: ReleaseBefore;
beforeAll(() => {
  if (hasReleaseBefore) before = buildReleaseBefore();
});

interface Older {
  smoke: Smoke;
  database: Knex;
  restart(): Promise<void>;
  /** What it logged as an error. */
  errors(): string[];
  close(): Promise<void>;
}

async function startOlder(name: string): Promise<Older> {
  const url = await database(true);
  const home = directory(name);
  const [port, ingressPort] = [await freePort(), await freePort()];
  const [S3_PORT, DNS_PORT] = [String(await freePort()), String(await freePort())];
  const settings = { DATABASE_URL: url, PLATFORM_DATA_DIR: home, PORT: String(port), S3_PORT, DNS_PORT };
  const programs: Program[] = [];
  const start = async (): Promise<string> => {
    const entry = path.join(before.directory, 'dist/server/main.js');
    programs.push(startProgram({ ...settings, INGRESS_PORT: String(ingressPort) }, { entry }));
    return (programs.at(-1) as Program).ready();
  };
  const stop = async (): Promise<void> => {
    programs.at(-1)?.signal('SIGTERM');
    await programs.at(-1)?.ended;
  };
  const base = await start();
  const first = JSON.parse(readFileSync(path.join(home, 'first-key.json'), 'utf8'));
  const handle = knex({ client: 'pg', connection: url, pool: { min: 0, max: 2 } });
  return {
    smoke: openSmoke({ base, ingressPort, first, lists: listsOf(before.directory) }),
    database: handle,
    async restart() {
      await stop();
      if (before.refusesNewerSchema) await handle('knex_migrations').whereNotIn('name', before.migrations).delete();
      await start();
    },
    errors: () =>
      programs.flatMap((program) =>
        program
          .out()
          .split('\n')
          .filter((line) => /^\{"level":[56]0/.test(line)),
      ),
    async close() {
      await stop();
      await handle.destroy();
    },
  };
}

function listsOf(root: string): string[] {
  const rows = readFileSync(path.join(root, 'test/golden/built.tsv'), 'utf8').split('\n');
  return rows
    .map((row) => row.split('\t'))
    .flatMap(([, , method, place = '']) => (method === 'GET' && !place.includes('{') ? [place] : []));
}

/** Migrations of today in a directory of their own, with more behind them. */
function withMigrations(name: string, more: Record<string, string>): string {
  const folder = directory(name);
  cpSync(MIGRATIONS, folder, { recursive: true });
  // What they import beside them.
  for (const room of ['core', 'db', 'models'])
    if (!existsSync(path.join(home, room))) symlinkSync(path.join(ROOT, room), path.join(home, room));
  for (const [migration, sql] of Object.entries(more))
    writeFileSync(path.join(folder, `${migration}.js`), `exports.up = (knex) => knex.raw(${JSON.stringify(sql)});\n`);
  return folder;
}

/** A program may have prepared `select *` before. */
const COLUMN_IN_EACH_TABLE = `do $$ declare name text; begin
  for name in select relname from pg_class where relnamespace = 'public'::regnamespace
    and relkind in ('r', 'p') and not relispartition and relname !~ '^knex_' loop
    execute format('alter table %I add column of_a_later_release integer not null default 0', name);
  end loop; end $$`;

it('the release before runs on while the schema becomes that of today, and starts again on it', async () => {
  const older = await startOlder('before');
  expect(await older.smoke.round()).toEqual([]);
  await migrate(older.database, withMigrations('expanding', { '9998_one_more_column': COLUMN_IN_EACH_TABLE }));
  if (!before.keepsStalePlans) expect(await older.smoke.round()).toEqual([]);
  await older.restart();
  expect(await older.smoke.round()).toEqual([]);
  expect(older.errors()).toEqual([]);
  await older.close();
});

it('a migration that the release before cannot bear is found by what it does then', async () => {
  const older = await startOlder('broken');
  const sql = 'alter table buckets rename column name to title; alter table domains add column owner text not null';
  await migrate(older.database, withMigrations('contracting', { '9998_renamed': sql }));
  const failed = await older.smoke.round();
  expect(failed.map((line) => line.split(':')[0])).toEqual(['application', 'buckets', 'lists']);
  await older.close();
});

it('each migration since the release before only expands, or takes what that does without', async () => {
  expect(await complaintsOf(MIGRATIONS)).toEqual([]);
});

it('a migration that takes something from the release before is named, with what', async () => {
  const newest = (before.migrations.at(-1) as string).slice(0, 4);
  const folder = withMigrations('contractions', {
    '9991_expand': `create table new_things (id text primary key, name text not null);
      alter table buckets add column colour text not null default 'red' check (colour in ('red', 'blue'));
      alter table buckets add column owner_id text references users (id);
      create unique index new_index on buckets (colour) where colour is null;
      alter table accounts drop constraint accounts_status;
      alter table accounts add constraint accounts_status check (status in ('active', 'suspended', 'closed'))`,
    '9992_take_from_what_is_new': 'alter table buckets drop column colour; drop table new_things',
    '9993_contract_9992_taken_too_early': 'alter table activity drop column outcome',
    [`9994_contract_${newest}_taken_in_time`]: 'alter table activity drop column action',
    '9995_rename': 'alter table projects rename column name to title',
    '9996_demand': `alter table domains add column owner text not null;
      alter table applications alter column preset set not null; alter table users alter column email type varchar(20);
      alter table accounts drop constraint accounts_status;
      alter table accounts add constraint accounts_status check (status in ('active'));
      drop table idempotency_records cascade`,
  });
  expect((await complaintsOf(folder)).filter((line) => line.startsWith('999'))).toEqual([
    '9993_contract_9992_taken_too_early: activity: column outcome is gone',
    '9995_rename: projects: column name is gone',
    '9995_rename: projects: the new column title has no default',
    "9996_demand: accounts: the rule is new or stricter: constraint accounts_status CHECK ((status = 'active'::text))",
    '9996_demand: applications: column preset must not be null any more',
    '9996_demand: domains: the new column owner has no default',
    '9996_demand: idempotency_records: the table is gone',
    '9996_demand: users: column email has another type (email character varying(20))',
  ]);
});

/** Each migration that came since the release before, and what it takes from its program. */
async function complaintsOf(folder: string): Promise<string[]> {
  const handle = knex({ client: 'pg', connection: await database(true), pool: { min: 0, max: 2 } });
  const tables = (): Promise<Table[]> => readTables(async (text) => (await handle.raw<{ rows: object[] }>(text)).rows);
  const complaints: string[] = [];
  await migrate(handle, path.join(before.directory, 'migrations'));
  const original = await tables();
  const names = migrationNames(folder).filter((name) => !before.migrations.includes(name));
  for (const name of names) {
    const schema = await tables();
    const { up } = createRequire(__filename)(path.join(folder, name)) as { up(knex: Knex): Promise<void> };
    await up(handle);
    if (isBorne(name)) continue;
    complaints.push(...contractionsOf(original, schema, await tables()).map((what) => `${name}: ${what}`));
  }
  await handle.destroy();
  return complaints;
}

/** `0072_contract_0064_name`: programs that know migration 0064 do without what it takes away. */
function isBorne(name: string): boolean {
  const [, needed] = /^\d{4}_contract_(\d{4})_/.exec(name) ?? [];
  return needed !== undefined && before.migrations.some((known) => known.startsWith(`${needed}_`));
}
