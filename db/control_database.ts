// The control plane's PostgreSQL: the pool, named statements, and sessions.
import knex, { type Knex } from 'knex';
import pg from 'pg';
import type { Sql, Statement } from '../core/context';
import { limits } from '../core/limits';
import { openBatches } from './batches';
import { isStalePlan, noteFailure, acquireConnection } from './connections';
import { openDueNotifier } from './due_notifier';
import { translate } from './errors';
import { queryNamed } from './named_query';
import { lastLeaderOf, openPools, type ConnectionSource } from './servers';
import { transact } from './transaction';

/** Columns of a table that statements select, and those that hold jsonb. */
export interface TableInfo {
  columns: string[];
  json: Set<string>;
  nullable: Set<string>;
}

/** Either the pool or one transaction. */
export interface Session extends Sql {
  readonly tables: Map<string, TableInfo>;
  /**
   * Sends a statement whose result is not needed, without waiting for it. If it fails, so does the transaction, at its
   * end.
   * @throws Error outside of a transaction
   */
  send(statement: Statement, values: readonly unknown[]): void;
  transaction<T>(run: (session: Session) => Promise<T>): Promise<T>;
}

export interface ControlDatabase extends Session {
  /** For migrations, on separate connections, of the server that has answered last. */
  readonly knex: Knex;
  close(): Promise<void>;
}

const TIMESTAMPTZ = 1184;
const INT8 = 20;
pg.types.setTypeParser(TIMESTAMPTZ, timestamp);
pg.types.setTypeParser(INT8, Number);

/** A server that is frozen, or behind a broken network, can't keep its own time-outs: it gets this much longer. */
const SILENCE_MS = 1_000;
const IDLE_MS = 30_000;

/**
 * Opens the pool. Connections are made when needed, so an unreachable server shows at the first query.
 * Sessions run in UTC with the statement time-out of core/limits.ts. Plans are made without looking at the values: for
 * a large old project PostgreSQL would otherwise walk the primary key from its end, through all rows of the others.
 * @param options.answerMs how long an answer is waited for, where the server ends no statement itself; 0 = for ever
 */
export function openControlDatabase(
  url: string,
  options: { poolSize: number; name?: string; answerMs?: number },
): ControlDatabase {
  const connection = {
    application_name: options.name ?? 'platform-api',
    connectionTimeoutMillis: limits.connectionTimeoutMs,
    keepAlive: true,
    query_timeout: options.answerMs ?? limits.statementTimeoutMs + SILENCE_MS,
    options:
      `-c timezone=UTC -c plan_cache_mode=force_generic_plan -c statement_timeout=${limits.statementTimeoutMs} -c ` +
      `idle_in_transaction_session_timeout=${limits.idleTransactionTimeoutMs}`,
  };
  // Pipelined: statements that a transaction does not await are sent at once (db/transaction.ts).
  const pool = openPools(url, {
    ...connection,
    pipeline: true,
    max: options.poolSize,
    idleTimeoutMillis: IDLE_MS,
  });
  let migrating: Knex | undefined;
  return {
    ...session(pool),
    get knex() {
      return (migrating ??= openKnex(url, connection));
    },
    async close() {
      await migrating?.destroy();
      await pool.end();
    },
  };
}

function openKnex(url: string, options: object): Knex {
  // knex prints lost connections to standard output by itself.
  const log = { warn() {}, error() {}, deprecate() {}, debug() {} };
  return knex({
    client: 'pg',
    connection: { ...options, connectionString: lastLeaderOf(url) },
    pool: { min: 0, max: 2 },
    acquireConnectionTimeout: limits.connectionTimeoutMs,
    log,
  });
}

/** Reads the columns of every table once, after the migrations, into `session.tables`. */
export async function describeTables(database: Session): Promise<void> {
  const rows = await database.query<{ table_name: string; column_name: string; udt_name: string; is_nullable: string }>(
    {
      name: 'columns',
      text: `select table_name, column_name, udt_name, is_nullable from information_schema.columns
        where table_schema = 'public' order by table_name, ordinal_position`,
    },
    [],
  );
  database.tables.clear();
  for (const row of rows) {
    const table = database.tables.get(row.table_name) ?? { columns: [], json: new Set(), nullable: new Set() };
    table.columns.push(row.column_name);
    if (row.udt_name === 'jsonb') table.json.add(row.column_name);
    if (row.is_nullable === 'YES') table.nullable.add(row.column_name);
    database.tables.set(row.table_name, table);
  }
}

function session(pool: ConnectionSource): Session {
  const read = openBatches(pool);
  const tables = new Map<string, TableInfo>();
  const due = openDueNotifier((statement, values) => alone(pool, statement, values));
  return {
    tables,
    inTransaction: false,
    due: (table) => due.notify(table),
    async query<Row>(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
      const ask = statement.quick ? read : (...question: Question) => alone(pool, ...question);
      try {
        const { rows } = await ask(statement, values).catch((error: unknown) => {
          if (!isStalePlan(error)) throw error;
          noteFailure(pool, error);
          return ask(statement, values);
        });
        return rows as Row[];
      } catch (error) {
        throw translate(error);
      }
    },
    send: () => {
      throw new Error('there is no transaction whose end could tell of a failure');
    },
    transaction: (run) =>
      transact({ pool, tables, due }, run).catch((error: unknown) => Promise.reject(translate(error))),
  };
}

type Question = [statement: Statement, values: readonly unknown[]];

async function alone(pool: ConnectionSource, ...question: Question): Promise<pg.QueryResult> {
  const client = await acquireConnection(pool);
  try {
    return await queryNamed(client, ...question);
  } finally {
    client.release();
  }
}

const WITH_MILLISECONDS = '2026-01-31 09:30:00.123+00'.length;

/** `2026-01-31 09:30:00.12+00` (a UTC session) to RFC 3339 with milliseconds, without a Date in between. */
function timestamp(text: string): string {
  // Nine of ten stand there with all their digits.
  if (text.length === WITH_MILLISECONDS && text[10] === ' ') return `${text.slice(0, 10)}T${text.slice(11, 23)}Z`;
  const [date, time = ''] = text.split(' ');
  const [clock, fraction = ''] = time.replace(/\+00$/, '').split('.');
  return `${date}T${clock}.${fraction.padEnd(3, '0').slice(0, 3)}Z`;
}
