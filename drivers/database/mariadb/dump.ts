// A dump of a tenant's database. Everything in it is the tenant's: it is read with an account that has rights in this
// database only, and none to change it.
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { ProgramFound } from '../../../core/catalog/host_facts';
import type { DatabaseServer } from '../../database';
import type { DriverContext } from '../../../core/driver';
import { isAtLeast } from '../../../core/process/version_output';
import { identifier, withLogin, withServer, type Query } from './connection';
import { dumpText } from './dump_text';
import { databaseOf, grantedDatabase } from './privileges';
import { toolOf } from './server';
import {
  closeToolAccount,
  requireToolSuccess,
  openToolAccount,
  PACKET_BYTES_MAX,
  spawnTool,
  type ToolAccess,
  type ToolAccount,
} from './tool';

const options = [
  '--single-transaction',
  '--quick',
  '--routines',
  '--events',
  '--triggers',
  '--no-tablespaces',
  // Under a lock, a table whose default is the next value of a sequence takes no rows.
  '--skip-add-locks',
  // Comments hold names, which older clients read as commands.
  '--skip-comments',
  `--max-allowed-packet=${PACKET_BYTES_MAX}`,
];
const namesShown = 5;
// Errors of the server or the session, which say nothing about a view.
const TRANSIENT_ERRORS = new Set([
  'ER_LOCK_WAIT_TIMEOUT',
  'ER_LOCK_DEADLOCK',
  'ER_QUERY_INTERRUPTED',
  'ER_CONNECTION_KILLED',
  'ER_SERVER_SHUTDOWN',
  'ER_OUTOFMEMORY',
  'ER_OUT_OF_SORTMEMORY',
  'ER_OUT_OF_RESOURCES',
  'ER_DISK_FULL',
  'ER_STATEMENT_TIMEOUT',
]);

/** Writes the dump to `file`. @returns what is not in it, as sentences for users */
export async function dump(
  access: ToolAccess,
  spec: DatabaseServer,
  found: ProgramFound,
  file: string,
  ctx: DriverContext,
): Promise<string | null> {
  return withReader(access, spec, ctx, async (account) => {
    const plan = await withLogin(access, account, (query) => planDump(spec, found, query), ctx);
    await write(access, spec, found, account, plan, file, ctx);
    return plan.missing;
  });
}

/** Writes a dump of the triggers alone, to be loaded after one that has none. */
export async function dumpTriggers(
  access: ToolAccess,
  spec: DatabaseServer,
  found: ProgramFound,
  file: string,
  ctx: DriverContext,
): Promise<void> {
  const alone = ['--no-create-info', '--no-data', '--skip-routines', '--skip-events'];
  await withReader(access, spec, ctx, (account) =>
    write(access, spec, found, account, { options: alone, header: '', missing: null }, file, ctx),
  );
}

async function withReader<T>(
  access: ToolAccess,
  spec: DatabaseServer,
  ctx: DriverContext,
  work: (account: ToolAccount) => Promise<T>,
): Promise<T> {
  const asAdmin = <R>(run: (query: Query) => Promise<R>): Promise<R> => withServer(access, spec, run, ctx);
  const account = await asAdmin(async (query) => {
    const made = await openToolAccount(access, spec.id, 'dump', query);
    await query(`GRANT SELECT, EXECUTE, SHOW VIEW, TRIGGER, EVENT ON ${grantedDatabase(spec)}.* TO ${made.name}`);
    await query(`GRANT SELECT ON mysql.proc TO ${made.name}`);
    return made;
  });
  try {
    return await work(account);
  } finally {
    await closeToolAccount(account, asAdmin);
  }
}

interface DumpPlan {
  options: string[];
  /** Statements before those of mariadb-dump. */
  header: string;
  missing: string | null;
}

async function planDump(spec: DatabaseServer, found: ProgramFound, query: Query): Promise<DumpPlan> {
  const broken = await brokenViews(spec, query);
  const keepsHistory = isAtLeast(found.version, 10, 11);
  const withHistory = keepsHistory ? [] : await versionedTables(spec, query, 'all');
  const precise = keepsHistory ? await versionedTables(spec, query, 'transactions') : [];
  const lost = [...withHistory, ...precise];
  const missing = [
    broken.length === 0
      ? null
      : `Left out: the ${named('view', broken)}, which ${broken.length === 1 ? 'refers' : 'refer'} to something that ` +
        'does not exist or may not be read.',
    lost.length === 0 ? null : historyLost(lost, keepsHistory),
  ].filter((one) => one !== null);
  return {
    options: [
      ...(keepsHistory && lost.length === 0 ? ['--dump-history'] : []),
      ...broken.map((name) => `--ignore-table=${databaseOf(spec)}.${name}`),
    ],
    header: await headerOf(spec, query),
    missing: missing.length === 0 ? null : missing.join(' '),
  };
}

function historyLost(tables: string[], keepsHistory: boolean): string {
  return keepsHistory
    ? `Left out: the history of all tables, since MariaDB can't dump the one by transactions of the ` +
        `${named('table', tables)}.`
    : `Left out: the history of the ${named('table', tables)}, which MariaDB dumps from version 10.11 on.`;
}

/** Views, and MERGE tables, of something that is gone: they stop a dump, and have no rows of their own. */
async function brokenViews(spec: DatabaseServer, query: Query): Promise<string[]> {
  const rows = await query(
    `SELECT TABLE_NAME AS name, TABLE_TYPE AS type FROM information_schema.TABLES
      WHERE TABLE_SCHEMA = ? AND (TABLE_TYPE = 'VIEW' OR ENGINE IS NULL OR ENGINE = 'MRG_MyISAM')
      ORDER BY BINARY TABLE_NAME`,
    [databaseOf(spec)],
  );
  const broken: string[] = [];
  for (const { name, type } of rows) {
    const error = await query(`SHOW FIELDS FROM ${identifier(databaseOf(spec))}.${identifier(String(name))}`).then(
      () => null,
      (reason: NodeJS.ErrnoException & { sqlState?: string }) => reason,
    );
    if (error === null) continue;
    if (error.sqlState === undefined || TRANSIENT_ERRORS.has(String(error.code))) throw error;
    // A table that cannot be read for another reason may have rows: the dump fails, and says why.
    if (type === 'VIEW' || error.code === 'ER_WRONG_MRG_TABLE') broken.push(String(name));
  }
  return broken;
}

/** `transactions`: with history by numbers of transactions only, which mariadb-dump refuses. */
async function versionedTables(spec: DatabaseServer, query: Query, which: 'all' | 'transactions'): Promise<string[]> {
  const rows = await query(
    which === 'all'
      ? `SELECT TABLE_NAME AS name FROM information_schema.TABLES
          WHERE TABLE_SCHEMA = ? AND TABLE_TYPE = 'SYSTEM VERSIONED'`
      : `SELECT TABLE_NAME AS name FROM information_schema.COLUMNS
          WHERE TABLE_SCHEMA = ? AND GENERATION_EXPRESSION = 'ROW START' AND DATA_TYPE = 'bigint'`,
    [databaseOf(spec)],
  );
  return rows.map(({ name }) => String(name));
}

/** Settings of the database itself, and those of a session that take what the tables hold, as it was allowed once. */
async function headerOf(spec: DatabaseServer, query: Query): Promise<string> {
  const [row] = await query(
    `SELECT DEFAULT_CHARACTER_SET_NAME AS characters, DEFAULT_COLLATION_NAME AS collation,
        SCHEMA_COMMENT AS comment, QUOTE(SCHEMA_COMMENT) AS quoted
      FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?`,
    [databaseOf(spec)],
  );
  const comment = row?.comment ? ` COMMENT = ${row.quoted}` : '';
  return [
    `/*M!100200 SET ${loadSettings} */;`,
    `ALTER DATABASE CHARACTER SET = ${row?.characters} COLLATE = ${row?.collation}${comment};`,
    '',
  ].join('\n');
}

/** Of the session of a load: rows that a CHECK refuses, and tables wider than a page, were made without them. */
export const loadSettings = 'check_constraint_checks=0, innodb_strict_mode=0';

async function write(
  access: ToolAccess,
  spec: DatabaseServer,
  found: ProgramFound,
  account: ToolAccount,
  plan: DumpPlan,
  file: string,
  ctx: DriverContext,
): Promise<void> {
  const tool = toolOf(found, 'mariadb-dump');
  const child = spawnTool(access, tool, account, [...options, ...plan.options, '--', databaseOf(spec)], ctx);
  const target = createWriteStream(file, { mode: 0o600, flush: true });
  const results = await Promise.allSettled([
    requireToolSuccess(child, 'The database could not be dumped.'),
    pipeline(child.stdout!, dumpText(plan.header), createGzip({ level: 1 }), target),
  ]);
  const failed = results.find((one) => one.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

function named(kind: string, names: string[]): string {
  const shown = names.slice(0, namesShown).map((name) => `\`${name}\``);
  const more = names.length > namesShown ? ` and ${names.length - namesShown} more` : '';
  return `${kind}${names.length === 1 ? '' : 's'} ${shown.join(', ')}${more}`;
}
