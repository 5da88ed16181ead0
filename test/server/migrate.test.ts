import type { ChildProcess } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import knex, { type Knex } from 'knex';
import type { Sql, Statement } from '../../core/context';
import { StartupError } from '../../core/startup_error';
import { migrate, pendingMigrations, requireCompatibleSchema, incompatibleMigrations } from '../../db/migrate';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/databases/database';
import { kill, spawnProgram } from '../support/processes/processes';

let database: TestDatabase;
let directory: string;
let child: ChildProcess | undefined;
const handles: Knex[] = [];

beforeEach(async () => {
  database = await createEmptyDatabase();
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'migrations-'));
});

afterEach(async () => {
  child?.kill('SIGKILL');
  await Promise.all(handles.splice(0).map((handle) => handle.destroy()));
  await database.drop();
  fs.rmSync(directory, { recursive: true });
});

/** As the service asks what is pending. */
function asking(handle: Knex): Pick<Sql, 'query'> {
  return { query: async <Row>({ text }: Statement) => (await handle.raw<{ rows: Row[] }>(text)).rows };
}

it('lets four processes start together on an empty database', async () => {
  step(
    '0001_first',
    `await knex.schema.createTable('first', (t) => t.text('a')); await knex.raw('select pg_sleep(0.2)');`,
  );
  step('0002_second', `await knex.schema.createTable('second', (t) => t.text('a'));`);
  await Promise.all([1, 2, 3, 4].map(() => migrate(connect(), directory)));
  expect(await applied()).toEqual(['0001_first', '0002_second']);
});

it('applies only what is missing, by name, without extension', async () => {
  step('0002_second', `await knex('log').insert({ step: 2 });`);
  step('0001_first', `await knex.schema.createTable('log', (t) => t.integer('step'));`);
  for (const other of ['0001_first.d.ts', '0001_first.js.map', 'README.md', 'columns.ts'])
    fs.writeFileSync(path.join(directory, other), 'not a migration');
  expect(await pendingMigrations(asking(connect()), directory)).toEqual(['0001_first', '0002_second']);
  await migrate(connect(), directory);
  step('0003_third', `await knex('log').insert({ step: 3 });`);
  expect(await pendingMigrations(asking(connect()), directory)).toEqual(['0003_third']);
  await migrate(connect(), directory);
  expect(await pendingMigrations(asking(connect()), directory)).toEqual([]);
  expect(await connect()('log').pluck('step')).toEqual([2, 3]);
});

it('is not bound by the time-outs of the pool, nor is the wait for another process', async () => {
  step('0001_slow', `await knex.raw('select pg_sleep(0.6)');`);
  const url = `${database.url}${database.url.includes('?') ? '&' : '?'}options=-c%20statement_timeout%3D300`;
  await Promise.all([migrate(connect(url), directory), migrate(connect(url), directory)]);
  expect(await applied()).toEqual(['0001_slow']);
  await expect(connect(url).raw('select pg_sleep(0.6)')).rejects.toThrow('statement timeout');
});

it('takes sources and compiled files for the same', async () => {
  step('0001_first', `await knex.schema.createTable('first', (t) => t.text('a'));`);
  await migrate(connect(), directory);
  fs.renameSync(path.join(directory, '0001_first.js'), path.join(directory, '0001_first.ts'));
  expect(await pendingMigrations(asking(connect()), directory)).toEqual([]);
  await migrate(connect(), directory);
});

it('changes nothing when a step fails', async () => {
  step('0001_first', `await knex.schema.createTable('first', (t) => t.text('a'));`);
  step('0002_broken', `throw new Error('broken step');`);
  await expect(migrate(connect(), directory)).rejects.toThrow('broken step');
  expect(await connect().schema.hasTable('first')).toBe(false);
  fs.rmSync(path.join(directory, '0002_broken.js'));
  step('0002_mended', `await knex.schema.createTable('second', (t) => t.text('a'));`);
  await migrate(connect(), directory);
  expect(await applied()).toEqual(['0001_first', '0002_mended']);
});

it('bears migrations of a newer program that expand, and still applies its own', async () => {
  step('0001_first', '');
  step('0002_future', '');
  await migrate(connect(), directory);
  fs.rmSync(path.join(directory, '0002_future.js'));
  step('0003_mine', `await knex.schema.createTable('mine', (t) => t.text('a'));`);
  await requireCompatibleSchema(connect(), directory);
  await migrate(connect(), directory);
  expect(await applied()).toEqual(['0001_first', '0002_future', '0003_mine']);
});

it('refuses a schema from which a newer program has taken what this one needs', async () => {
  step('0001_first', '');
  step('0003_contract_0002_drop_columns', '');
  await migrate(connect(), directory);
  fs.rmSync(path.join(directory, '0003_contract_0002_drop_columns.js'));
  for (const check of [migrate, requireCompatibleSchema]) {
    const refusal = await check(connect(), directory).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StartupError);
    expect((refusal as Error).message).toMatch(
      /^the database schema is newer than this program supports: it has 0003_contract_0002_drop_columns\. Start the/,
    );
  }
  step('0002_expand', '');
  await requireCompatibleSchema(connect(), directory);
});

it('knows by their names which migrations a program does not bear', () => {
  const known = ['0001_first', '0002_second', '0003_contract_0001_old'];
  const compatible = [...known, '0004_more', '0005_contract_0002_columns', '0006_contracts_of_customers'];
  expect(incompatibleMigrations(compatible, known)).toEqual([]);
  const not = ['0004_contract_0003_x', '0005_contract_0004_x', '0006_contract_columns', '0007_contract'];
  expect(incompatibleMigrations(not, known)).toEqual(not.slice(1));
});

it.each([
  ['in its transaction', '', false],
  ['outside of transactions, which leaves a dead lock', 'exports.config = { transaction: false };', true],
])('makes good a migrator that was killed %s', async (_where, config, deadLock) => {
  step(
    '0001_first',
    "await knex.raw('create table if not exists first (a text)'); await new Promise((resolve) => " +
      'setTimeout(resolve, 60000));',
    config,
  );
  child = spawnProgram(
    "const knex = require('knex'); require('./db/migrate.ts').migrate(knex({ client: 'pg', connection: " +
      'process.argv[1] }), process.argv[2])',
    [database.url, directory],
  );
  await until(isMigrating);
  await kill(child);
  expect(await isLocked()).toBe(deadLock);
  step('0001_first', `await knex.raw('create table if not exists first (a text)');`);
  await migrate(connect(), directory);
  expect(await applied()).toEqual(['0001_first']);
  expect(await isLocked()).toBe(false);
});

it('gives the copies of the template the schema of this program', async () => {
  const copy = await createTestDatabase();
  const handle = connect(copy.url);
  expect(await pendingMigrations(asking(handle), path.resolve(__dirname, '../../migrations'))).toEqual([]);
  await handle.destroy();
  await copy.drop();
});

function connect(url = database.url): Knex {
  const handle = knex({ client: 'pg', connection: url, pool: { min: 0, max: 2 }, log: { warn: () => {} } });
  handles.push(handle);
  return handle;
}

function step(name: string, body: string, config = ''): void {
  fs.writeFileSync(path.join(directory, `${name}.js`), `exports.up = async (knex) => { ${body} }; ${config}`);
}

function applied(): Promise<string[]> {
  return connect()('knex_migrations').orderBy('id').pluck('name');
}

async function isLocked(): Promise<boolean> {
  return (await connect()('knex_migrations_lock').where('is_locked', 1)).length > 0;
}

/** The other process has run the statement of its step, and waits. */
async function isMigrating(): Promise<boolean> {
  const { rows } = await connect().raw<{ rows: unknown[] }>(
    `select from pg_stat_activity where datname = current_database()
      and query like 'create table if not exists first%' and state like 'idle%'`,
  );
  return rows.length > 0;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 10_000; !(await condition()); await sleep(50))
    if (Date.now() > end) throw new Error('waited in vain');
}
