// The schema of the control plane's database: forward-only steps in migrations/NNNN_name.ts. One that takes away what
// programs used before says so in its name, NNNN_contract_MMMM_name: programs that know migration MMMM do without it.
// The name is all that an older program sees of it, in the table of what was done.
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { Sql } from '../core/context';
import { StartupError } from '../core/startup_error';
import { named } from './statement';

/**
 * What a file of migrations/ exports. All pending ones run in one transaction, unless one of them must not
 * (`create index concurrently`): then each runs in its own, and that one must bear to be run again after a crash.
 */
interface Migration {
  up(knex: Knex): Promise<void>;
  config?: { transaction: boolean };
}

const LOCK = `hashtext('platform-api migrations')`;
const LOCK_POLL_MS = 200;
const NO_TABLE = '42P01';
const COMPLETED = named('select name from knex_migrations');

/**
 * Brings the schema up to date. Processes that start together wait for each other, and a killed one is made good by the
 * next. Needs a pool of at least two connections, on sessions (no transaction-mode pooler). Its time-outs do not bind
 * migrations. Throws StartupError when a newer program has taken away what this one needs.
 */
export async function migrate(knex: Knex, directory: string): Promise<void> {
  if (await isUpToDate(knex, directory)) return;
  const connection: unknown = await knex.client.acquireConnection();
  try {
    await lock(knex, connection);
    await requireCompatibleSchema(knex, directory);
    await freeDeadLock(knex, directory);
    const migrationSource = source(directory);
    // Newer ones, which this program bears without knowing them, are no fault of the directory.
    await knex.migrate.latest({ migrationSource, beforeAll: withoutTimeouts, disableMigrationsListValidation: true });
  } finally {
    await knex
      .raw(`select pg_advisory_unlock(${LOCK})`)
      .connection(connection)
      .catch(() => {});
    await knex.client.releaseConnection(connection);
  }
}

/** One question instead of ten: most starts have nothing to bring up to date. */
async function isUpToDate(knex: Knex, directory: string): Promise<boolean> {
  const done = await completedNames(knex);
  const known = migrationNames(directory);
  return known.every((name) => done.includes(name)) && incompatibleMigrations(done, known).length === 0;
}

function completedNames(knex: Knex): Promise<string[]> {
  return completed(() => knex('knex_migrations').pluck<string[]>('name'));
}

/**
 * The program of before an upgrade runs on the schema of after it: what expands is borne, and what contracts by those
 * that know the migration it names.
 * @throws StartupError when this program cannot work with what a newer one has removed
 */
export async function requireCompatibleSchema(knex: Knex, directory: string): Promise<void> {
  const incompatible = incompatibleMigrations(await completedNames(knex), migrationNames(directory));
  if (incompatible.length)
    throw new StartupError(
      `the database schema is newer than this program supports: it has ${incompatible.join(', ')}. Start the newer ` +
        'program, or restore the backup of before its upgrade',
    );
}

/**
 * Of the migrations of a database or of another program, those after which a program does not run any more.
 * @param known the migrations of that program
 */
export function incompatibleMigrations(names: readonly string[], known: readonly string[]): string[] {
  const newest = Math.max(0, ...known.map((name) => Number(name.slice(0, 4))));
  return names.filter((name) => {
    if (known.includes(name)) return false;
    const [, needed] = /^\d{4}_contract_(\d{4})_/.exec(name) ?? [];
    // A contraction that does not say what it needs is borne by nobody.
    return needed === undefined ? /^\d{4}_contract(?:_|$)/.test(name) : Number(needed) > newest;
  });
}

/** The migrations of the directory that the database does not have yet, in order. */
export async function pendingMigrations(database: Pick<Sql, 'query'>, directory: string): Promise<string[]> {
  const done = new Set(
    await completed(async () => (await database.query<{ name: string }>(COMPLETED, [])).map(({ name }) => name)),
  );
  return migrationNames(directory).filter((name) => !done.has(name));
}

/**
 * Names carry no extension: the same database serves the sources in tests and the compiled files.
 */
function source(directory: string): Knex.MigrationSource<string> {
  const load = createRequire(__filename);
  return {
    getMigrations: () => Promise.resolve(migrationNames(directory)),
    getMigrationName: (name) => name,
    getMigration: (name) =>
      Promise.resolve({ down: olderProgramError, ...(load(path.resolve(directory, name)) as Migration) }),
  };
}

/** Names of the migrations of a program, in order. */
export function migrationNames(directory: string): string[] {
  const names = fs.readdirSync(directory).flatMap((file) => /^(\d{4}_\w+)\.(?:ts|js)$/.exec(file)?.[1] ?? []);
  return [...new Set(names)].sort();
}

async function completed(query: () => Promise<string[]>): Promise<string[]> {
  try {
    return await query();
  } catch (error) {
    if ((error as { code?: string }).code === NO_TABLE) return [];
    throw error;
  }
}

/**
 * A migrator killed outside of a transaction leaves knex's lock row; the advisory lock, which dies with its session,
 * proves that none runs.
 */
async function freeDeadLock(knex: Knex, directory: string): Promise<void> {
  const locked =
    (await knex.schema.hasTable('knex_migrations_lock')) &&
    (await knex('knex_migrations_lock').where('is_locked', 1).first<object>());
  if (locked) await knex.migrate.forceFreeMigrationsLock({ migrationSource: source(directory) });
}

/** Polls for the advisory lock: a long wait in one statement would exceed the pool's statement time-out. */
async function lock(knex: Knex, connection: unknown): Promise<void> {
  for (;;) {
    const { rows } = await knex
      .raw<{ rows: { locked: boolean }[] }>(`select pg_try_advisory_lock(${LOCK}) as locked`)
      .connection(connection);
    if (rows[0]?.locked) return;
    await sleep(LOCK_POLL_MS);
  }
}

async function withoutTimeouts(transaction: Knex | Knex.Transaction): Promise<void> {
  if (transaction.isTransaction)
    await transaction.raw('set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0');
}

function olderProgramError(): Promise<void> {
  return Promise.reject(new Error('migrations only go forward'));
}
