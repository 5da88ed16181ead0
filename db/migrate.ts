// The schema of the control plane's database: forward-only steps in migrations/NNNN_name.ts.
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
 * migrations. Throws StartupError when the schema is newer than this program.
 */
export async function migrate(knex: Knex, directory: string): Promise<void> {
  const connection: unknown = await knex.client.acquireConnection();
  try {
    await lock(knex, connection);
    await assertNotNewer(knex, directory);
    await freeDeadLock(knex, directory);
    await knex.migrate.latest({ migrationSource: source(directory), beforeAll: withoutTimeouts });
  } finally {
    await knex
      .raw(`select pg_advisory_unlock(${LOCK})`)
      .connection(connection)
      .catch(() => {});
    await knex.client.releaseConnection(connection);
  }
}

/**
 * Throws StartupError when the database has migrations that this program does not know: an older program may not write
 * to it.
 */
export async function assertNotNewer(knex: Knex, directory: string): Promise<void> {
  const known = new Set(namesIn(directory));
  const unknown = (await completed(() => knex('knex_migrations').pluck<string[]>('name'))).filter(
    (name) => !known.has(name),
  );
  if (unknown.length)
    throw new StartupError(`the database schema is newer than this program: it has ${unknown.join(', ')}`);
}

/** The migrations of the directory that the database does not have yet, in order. */
export async function pendingMigrations(database: Pick<Sql, 'query'>, directory: string): Promise<string[]> {
  const done = new Set(
    await completed(async () => (await database.query<{ name: string }>(COMPLETED, [])).map(({ name }) => name)),
  );
  return namesIn(directory).filter((name) => !done.has(name));
}

/**
 * Names carry no extension: the same database serves the sources in tests and the compiled files.
 */
function source(directory: string): Knex.MigrationSource<string> {
  const load = createRequire(__filename);
  return {
    getMigrations: () => Promise.resolve(namesIn(directory)),
    getMigrationName: (name) => name,
    getMigration: (name) =>
      Promise.resolve({ down: olderProgramError, ...(load(path.resolve(directory, name)) as Migration) }),
  };
}

function namesIn(directory: string): string[] {
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
