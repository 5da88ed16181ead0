// Checks of restored data: every table is read, every B-tree walked, every page compared with its checksum, and the
// dump of the backup, which downloads give, is read to its end and its rows are counted.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { Client } from 'pg';
import { CommandFailed } from '../../../../core/process/command';
import { failureTextOf } from '../../../../core/log/failure_text';
import { DriverError, type DriverContext } from '../../../../core/driver';
import type { BackupOfServer } from '../../../hosted_server';
import {
  assertionFailure,
  splitLines,
  requireRows,
  requireTrue,
  totalRows,
} from '../../../hosted_server/restored_rows';
import { exists, ownerOf, removeServerTree } from '../../../hosted_server/server_directory';
import { fetchFiles } from '../../../hosted_server/stored_backups';
import { backupsOf, socketDirectory, type Cluster } from '../cluster';
import { runTool, toolCommand } from '../programs';
import { stopPostgres } from '../server';
import { inSession, isUnavailable, sqlIdentifier, sqlString, type Session } from '../session';
import { manifestOf, type Manifest } from './known_backups';

/** One statement may read a table of the largest package. */
const STATEMENT_MS = 6 * 3_600_000;
const ASSERTION_MS = 60_000;
/** Resources of the server or its end, not its data (PostgreSQL, "PostgreSQL Error Codes"). */
const PASSING_ERRORS = /^(08|53|55|57|58030)/;

/** @throws DriverError invalid, with what is not whole */
export async function verifyRestored(
  cluster: Cluster,
  from: BackupOfServer,
  assertion: string | null,
  ctx: DriverContext,
): Promise<{ rows: number }> {
  const manifest = await manifestOf(path.join(backupsOf(cluster.engine, from.server_id), from.backup_id));
  const main = cluster.spec.database_name ?? 'postgres';
  const all: Map<string, number>[] = [];
  for (const database of await databasesOf(cluster)) {
    const rows = await inSession(cluster, { database, statementMs: STATEMENT_MS }, (session) => readAll(session, ctx));
    if (database === main && manifest) await requireRowsOfDump(cluster, from, manifest, rows, ctx);
    all.push(rows);
  }
  if (assertion !== null) await requireAssertion(cluster, main, assertion);
  await requireChecksums(cluster, ctx);
  return { rows: all.reduce((sum, rows) => sum + totalRows(rows), 0) };
}

function databasesOf(cluster: Cluster): Promise<string[]> {
  return inSession(cluster, {}, async (session) => {
    const { rows } = await session.query<{ datname: string }>(
      `select datname from pg_database where datallowconn and not datistemplate order by datname`,
    );
    return rows.map(({ datname }) => datname);
  });
}

interface Relation {
  oid: number;
  name: string;
  isTable: boolean;
}

/** The rows of each table, after all of it was read. */
async function readAll(session: Session, ctx: DriverContext): Promise<Map<string, number>> {
  const { rows: relations } = await session.query<Relation>(
    // A restore from files empties tables that are not logged.
    `select c.oid::int8::int as oid, format('%I.%I', n.nspname, c.relname) as name, c.relkind <> 'i' as "isTable"
      from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_index i on i.indexrelid = c.oid
        left join pg_am a on a.oid = c.relam
      where c.relpersistence = 'p' and (c.relkind in ('r', 'm') and a.amname = 'heap'
        or c.relkind = 'i' and a.amname = 'btree' and i.indisvalid and i.indisready) order by c.oid`,
  );
  const check = await openChecks(session);
  const found = new Map<string, number>();
  for (const relation of relations) {
    if (ctx.signal.aborted) throw new DriverError('transient', 'The step did not finish in time.');
    const rows = await readRelation(session, relation, check);
    if (rows !== null && !/^(pg_catalog|information_schema)\./.test(relation.name)) found.set(relation.name, rows);
  }
  return found;
}

interface Checks {
  schema: string;
  /** Since PostgreSQL 14. */
  hasHeap: boolean;
}

/** null: the host does not have the extension `amcheck`. */
async function openChecks(session: Session): Promise<Checks | null> {
  const { rows } = await session.query<{ schema: string | null }>(
    `select (select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace
      where e.extname = 'amcheck') as schema from pg_available_extensions where name = 'amcheck'`,
  );
  const [offered] = rows;
  if (!offered) return null;
  const schema = offered.schema ?? 'platform_checks';
  if (offered.schema === null) {
    await session.query(`create schema if not exists ${schema}`);
    await session.query(`create extension amcheck schema ${schema}`);
  }
  const { rowCount } = await session.query(
    `select from pg_proc where proname = 'verify_heapam' and pronamespace = ${sqlString(schema)}::regnamespace`,
  );
  return { schema: sqlIdentifier(schema), hasHeap: rowCount !== 0 };
}

async function readRelation(session: Session, { oid, name, isTable }: Relation, check: Checks | null) {
  try {
    if (!isTable) {
      if (check) await session.query(`select ${check.schema}.bt_index_check($1::oid::regclass)`, [oid]);
      return null;
    }
    if (check?.hasHeap) await requireWholeHeap(session, oid, name, check.schema);
    const { rows } = await session.query<{ count: string }>(`select count(*) as count from only ${name}`);
    return Number(rows[0]?.count);
  } catch (error) {
    throw damageOf(error, `${isTable ? 'The table' : 'The index'} ${name} of the restored data is damaged`);
  }
}

async function requireWholeHeap(session: Session, oid: number, name: string, schema: string): Promise<void> {
  const { rows } = await session.query<{ blkno: string; msg: string }>(
    `select blkno, msg from ${schema}.verify_heapam($1::oid::regclass, on_error_stop => true, check_toast => true)
      limit 1`,
    [oid],
  );
  const [damage] = rows;
  if (damage)
    throw new DriverError(
      'invalid',
      `The table ${name} of the restored data is damaged in block ${damage.blkno}: ${damage.msg}`,
    );
}

function damageOf(error: unknown, what: string): unknown {
  const { code = '', message } = error as { code?: string; message: string };
  const isOfData = !(error instanceof DriverError) && /^[0-9A-Z]{5}$/.test(code) && !PASSING_ERRORS.test(code);
  if (!isOfData || isUnavailable(error)) return error;
  return Object.assign(new DriverError('invalid', `${what}: ${message}`), { cause: error });
}

/** Backups without a dump say why by themselves. */
async function requireRowsOfDump(
  cluster: Cluster,
  from: BackupOfServer,
  manifest: Manifest,
  found: ReadonlyMap<string, number>,
  ctx: DriverContext,
): Promise<void> {
  if (manifest.dump !== undefined) return;
  const { engine, serverDirectory, programs } = cluster;
  const here = path.join(backupsOf(engine, from.server_id), from.backup_id, 'dump');
  const to = path.join(serverDirectory.path, 'fetched');
  const isHere = await exists(here);
  if (!isHere)
    await fetchFiles(engine, { serverId: from.server_id, backupId: from.backup_id }, { names: ['dump'], to }, ctx);
  const file = isHere ? here : path.join(to, 'dump');
  const rows = await rowsOfDump(path.join(programs.bin, 'pg_restore'), file, ctx);
  await removeServerTree(to, ctx);
  const expected = new Map([...rows].filter(([table]) => found.has(table) || manifest.is_quiet === 1));
  // What was made between the two parts of the backup is in the dump alone, and so are tables that are not logged.
  const unlogged = await unloggedTables(cluster, manifest.database_name);
  for (const table of unlogged) expected.delete(table);
  requireRows({ expected, found, isExact: manifest.is_quiet === 1, unit: 'rows' });
}

function unloggedTables(cluster: Cluster, database: string): Promise<string[]> {
  return inSession(cluster, { database }, async (session) => {
    const { rows } = await session.query<{ name: string }>(
      `select format('%I.%I', n.nspname, c.relname) as name from pg_class c
        join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' and c.relpersistence <> 'p'`,
    );
    return rows.map(({ name }) => name);
  });
}

/** By table, as pg_dump writes its name. Reads all of the dump, whose parts have checksums. */
async function rowsOfDump(program: string, file: string, ctx: DriverContext): Promise<Map<string, number>> {
  const [command = '', ...args] = toolCommand(program, ['--data-only', '-f', '-', file], 'low');
  const child = spawn(command, args, {
    ...{ cwd: '/', signal: ctx.signal, killSignal: 'SIGKILL', stdio: ['ignore', 'pipe', 'pipe'] },
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' },
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-20_000)));
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const [rows, code] = await Promise.all([countRows(child.stdout), ended]).catch((error: unknown) => {
    throw Object.assign(new DriverError('transient', 'The dump of the backup was not read in time.'), { cause: error });
  });
  if (code === 0) return rows;
  const reason = failureTextOf(stderr) ?? 'pg_restore ended early.';
  throw new DriverError('invalid', `The dump of the backup, which downloads give, is damaged. ${reason}`);
}

async function countRows(stream: AsyncIterable<Buffer>): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  let table: string | null = null;
  let rows = 0;
  for await (const line of splitLines(stream)) {
    if (table === null) {
      // Only such lines are looked at as text.
      if (line[0] !== 0x43) continue;
      table = /^COPY (.+?)(?: \(.*\))? FROM stdin;$/.exec(line.toString('utf8'))?.[1] ?? null;
      rows = 0;
    } else if (line.length === 2 && line[0] === 0x5c && line[1] === 0x2e) {
      found.set(table, rows);
      table = null;
    } else {
      rows += 1;
    }
  }
  return found;
}

/** As the default user: what the owner writes has the rights of the owner. */
async function requireAssertion(cluster: Cluster, database: string, text: string): Promise<void> {
  const [user] = cluster.spec.users;
  const client = new Client({
    ...{ host: socketDirectory(cluster.serverDirectory), port: cluster.spec.port, database },
    ...{ user: user?.username, password: user?.password, application_name: 'platform' },
    options: `-c default_transaction_read_only=on -c statement_timeout=${ASSERTION_MS}`,
    ...{ connectionTimeoutMillis: 10_000, query_timeout: ASSERTION_MS + 5_000 },
  });
  client.on('error', () => undefined); // the current query reports it
  try {
    await client.connect();
    // By the extended protocol, which takes one statement.
    const query = { text, rowMode: 'array' as const, queryMode: 'extended' };
    const { rows } = await client.query<unknown[]>(query);
    requireTrue(rows.map(([first]) => first));
  } catch (error) {
    if (error instanceof DriverError) throw error;
    throw assertionFailure((error as Error).message);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Of every page, where the host has the program. The server is stopped for it. */
async function requireChecksums(cluster: Cluster, ctx: DriverContext): Promise<void> {
  const { serverDirectory, programs } = cluster;
  const program = path.join(programs.bin, 'pg_checksums');
  await stopPostgres(cluster, 'server', ctx);
  if (!(await exists(program))) return;
  const as = await ownerOf(serverDirectory);
  await runTool(program, ['--check', '-D', serverDirectory.data], { as, priority: 'low' }, ctx).catch(
    (error: unknown) => {
      if (!(error instanceof CommandFailed) || error.code === null) throw error;
      if (/data checksums are not enabled/.test(error.stderr)) return;
      const reason = failureTextOf(error.stderr) ?? 'pg_checksums found pages that differ from their checksums.';
      throw Object.assign(new DriverError('invalid', `The restored data are damaged. ${reason}`), { cause: error });
    },
  );
}
