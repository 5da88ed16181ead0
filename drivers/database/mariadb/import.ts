// Imports: the statements of a dump, run one after another as the first user of the database. Definitions are no part
// of transactions here, so the database has to be empty, and an import that fails empties it again.
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection, RowDataPacket } from 'mysql2/promise';
import type { DatabaseServer, ServerUser } from '../../database';
import { DriverError, untilAborted, type DriverContext } from '../../../core/driver';
import { cleanFailureText } from '../../../core/log/failure_text';
import { toSentence } from '../../../core/sentence';
import type { EngineFound } from '../../../core/catalog/host_facts';
import {
  ownerOf,
  requireServerDirectory,
  socketOf,
  writeFileFor,
  type ServerDirectory,
} from '../../hosted_server/server_directory';
import {
  clearAgain,
  isExcluded,
  keptOutput,
  Reporter,
  requireGoing,
  type ImportReport,
  type ImportWork,
  type SourceServer,
} from '../imports/import';
import { inspectSourceFile } from '../imports/source_file';
import { SqlReader, type DumpStatement } from '../imports/sql_reader';
import type { ProxiedContext } from '../proxied';
import { requireProgram } from '../proxied_server';
import { identifier, serverAccessOf, withServer, type Query } from './connection';
import { databaseOfComment, withDatabaseName } from './import_names';
import { definitionOf, endOfInsertHead, rowsOf, rulingOf, type Ruling } from './import_rules';
import { databaseOf } from './privileges';
import { toolOf } from './server';
import { requireToolSuccess, spawnTool, toolAccessOf } from './tool';

const SESSION_ENDS_MS = 30_000;
const SESSION_LOCK = 'platform_import';
const REASON_CHARACTERS_MAX = 240;
const DUMPED = [
  ...['--single-transaction', '--quick', '--skip-lock-tables', '--routines', '--triggers', '--hex-blob'],
  ...['--skip-add-locks', '--no-tablespaces'],
];
/** No right to a database or a table, no such database, no right to a routine. */
const OTHER_DATABASE = new Set([1044, 1049, 1142, 1370]);
/** Databases of the server itself, in a dump of all. */
const SYSTEM = new Set(['mysql', 'sys', 'information_schema', 'performance_schema']);

/** @throws DriverError invalid with the line and the reason: the database is empty then */
export async function importData(
  engine: ProxiedContext,
  spec: DatabaseServer,
  work: ImportWork,
  ctx: DriverContext,
): Promise<ImportReport> {
  const found = requireProgram(engine, spec.version);
  const serverDirectory = await requireServerDirectory(engine, spec.id);
  const asAdmin = <T>(run: (query: Query) => Promise<T>, during = ctx) =>
    withServer(serverAccessOf(serverDirectory), spec, run, during);
  if (work.previous === null) {
    await asAdmin((query) => requireEmpty(spec, query));
    await new Reporter(work, () => 0).save();
  }
  try {
    // What a killed call left is from an import into an empty database.
    if (work.previous !== null) await asAdmin((query) => empty(spec, query));
    return await load(serverDirectory, spec, found, work, ctx);
  } catch (error) {
    // Also where it was canceled. A control plane that ends leaves it to the next call.
    const end = await clearAgain(ctx, (own) => asAdmin((query) => empty(spec, query), own));
    if (!(error instanceof DriverError) || error.reason !== 'invalid') throw error;
    throw Object.assign(new DriverError('invalid', `${error.message} ${end}`), { cause: error.cause });
  }
}

async function load(
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  found: EngineFound,
  work: ImportWork,
  ctx: DriverContext,
): Promise<ImportReport> {
  const { dump: source, database } = await textOf(serverDirectory, found, work, ctx);
  let named = database;
  const reader = new SqlReader(source.text, 'mysql', (line) => void (named ??= databaseOfComment(line)));
  const reporter = new Reporter(work, () => reader.bytes);
  const connection = await connectAsOwner(serverDirectory, spec);
  const stop = (): void => connection.destroy();
  ctx.signal.addEventListener('abort', stop, { once: true });
  try {
    await lockSession(connection);
    for (const setting of ['NAMES utf8mb4', 'FOREIGN_KEY_CHECKS = 0', 'UNIQUE_CHECKS = 0', "time_zone = '+00:00'"])
      await connection.query(`SET ${setting}`);
    const loader = {
      connection,
      reporter,
      work,
      version: found.version,
      target: databaseOf(spec),
      named: () => named,
      database: null as string | null,
      elsewhere: false,
    };
    for (let next = await reader.next(); next !== null; next = await reader.next()) {
      requireGoing(ctx);
      await untilAborted(ctx.signal, follow(loader, next)).catch((error: unknown) => {
        throw failureAt(next as DumpStatement, error, ctx);
      });
      await reporter.tick();
    }
    await source.whole();
    await countRows(connection, reporter);
    return reporter.result();
  } catch (error) {
    requireGoing(ctx);
    if (error instanceof DriverError && /incomplete/.test(error.message)) await source.whole();
    throw error;
  } finally {
    ctx.signal.removeEventListener('abort', stop);
    connection.destroy();
    await reader.close();
  }
}

interface Loader {
  connection: Connection;
  reporter: Reporter;
  work: ImportWork;
  version: string;
  /** Name of the database that is imported into. */
  target: string;
  /** Name of the database that a dump of one says it is of. */
  named(): string | null;
  /** Of a dump of several databases, the one that is imported. */
  database: string | null;
  elsewhere: boolean;
}

async function follow(loader: Loader, statement: DumpStatement): Promise<void> {
  const { connection, reporter, work, version } = loader;
  const ruling: Ruling = rulingOf(statement.text, version);
  if (ruling.do === 'database') return enter(loader, ruling.name);
  if (loader.elsewhere) return;
  if (ruling.do === 'refuse') throw new DriverError('invalid', ruling.reason);
  if (ruling.do === 'skip') {
    const { missing } = ruling;
    return missing && reporter.notTaken(missing.kind, missing.name, missing.reason);
  }
  if (ruling.do === 'run') {
    for (const account of ruling.definers)
      reporter.notTaken('definer', account, 'Views, routines, triggers and events belong to the user of the database.');
    return runDefinition(loader, ofTarget(loader, ruling.text));
  }
  const table = Buffer.from(ruling.table, 'latin1').toString();
  if (isExcluded(table, work.excluded)) return reporter.notTaken('rows', table, 'They are excluded.');
  await connection.query(ofTarget(loader, ruling.text, endOfInsertHead(ruling.text)));
  reporter.table(table, rowsOf(ruling.text));
}

/** What names the database of the dump means the one that is imported into. */
function ofTarget({ database, named, target }: Loader, text: string, end?: number): string {
  const from = database ?? named();
  return from === null ? text : withDatabaseName(text, from, target, end);
}

/** A view, trigger, routine or event that needs another database is left out. */
async function runDefinition({ connection, reporter }: Loader, text: string): Promise<void> {
  const definition = definitionOf(text);
  try {
    await connection.query(text);
  } catch (error) {
    const { errno } = error as { errno?: number };
    if (definition === null || errno === undefined || !OTHER_DATABASE.has(errno)) throw error;
    const name = Buffer.from(definition.name, 'latin1').toString();
    reporter.notTaken(definition.kind, name, 'It uses another database, or what this one does not have.');
  }
}

function enter(loader: Loader, name: string): void {
  if (SYSTEM.has(name.toLowerCase())) loader.elsewhere = true;
  else {
    loader.database ??= name;
    loader.elsewhere = loader.database !== name;
    if (loader.elsewhere) {
      const reason = `The file has several databases; that of ${loader.database} is imported.`;
      loader.reporter.notTaken('database', name, reason);
    }
  }
}

async function countRows(connection: Connection, reporter: Reporter): Promise<void> {
  for (const name of reporter.tableNames) {
    const raw = Buffer.from(identifier(name)).toString('latin1');
    const [rows] = await connection.query<RowDataPacket[]>(`SELECT COUNT(*) AS count FROM ${raw}`);
    reporter.counted(name, Number(rows[0]?.count));
  }
}

/**
 * With bytes as they are, whatever character set the dump chooses: the package would follow it (SESSION_TRACK). No file
 * of this host is ever sent.
 */
async function connectAsOwner(serverDirectory: ServerDirectory, spec: DatabaseServer): Promise<Connection> {
  const owner = ownerOfDatabase(spec);
  const { createConnection } = await import('mysql2/promise');
  const connection = await createConnection({
    ...{ socketPath: socketOf(serverDirectory), user: owner.username, password: owner.password },
    ...{
      database: databaseOf(spec),
      charset: 'BINARY',
      connectTimeout: 10_000,
      flags: ['-LOCAL_FILES', '-SESSION_TRACK'],
    },
  });
  connection.on('error', () => undefined);
  return connection;
}

async function lockSession(connection: Connection): Promise<void> {
  const [rows] = await connection.query<RowDataPacket[]>('SELECT GET_LOCK(?, 0) AS locked', [SESSION_LOCK]);
  if (Number(rows[0]?.locked) === 1) return;
  throw new DriverError('invalid', 'Another session holds the lock `platform_import`. End it.');
}

async function requireEmpty(spec: DatabaseServer, query: Query): Promise<void> {
  const name = databaseOf(spec);
  const rows = await query(
    `SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?
      UNION SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = ?
      UNION SELECT EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = ? LIMIT 1`,
    [name, name, name],
  );
  if (rows.length)
    throw new DriverError(
      'invalid',
      `The database is not empty: it has ${String(rows[0]!.name)}. Nothing was changed.`,
    );
}

/** Rights are those to a name, and stay. */
async function empty(spec: DatabaseServer, query: Query): Promise<void> {
  const name = identifier(databaseOf(spec));
  await endSession(query);
  await query(`DROP DATABASE IF EXISTS ${name}`);
  await query(`CREATE DATABASE ${name}`);
}

/**
 * Of an import that was ended: what it had sent would still be run. Its session holds a lock, by which it is told from
 * clients of the tenant: where these come through a proxy, they are of the same user and host.
 */
async function endSession(query: Query): Promise<void> {
  const until = Date.now() + SESSION_ENDS_MS;
  for (;;) {
    const [row] = await query('SELECT IS_USED_LOCK(?) AS id', [SESSION_LOCK]);
    if (row!.id === null) return;
    if (Date.now() > until) throw new DriverError('transient', 'The session of the import does not end.');
    await query(`KILL CONNECTION ${Number(row!.id)}`).catch(() => undefined);
    await sleep(100);
  }
}

function ownerOfDatabase({ users }: DatabaseServer): ServerUser {
  const owner = users.find(({ access }) => access === 'admin');
  if (owner) return owner;
  throw new DriverError('invalid', 'The database has no user with full access, as whom the import would run.');
}

interface DumpText {
  text: AsyncIterable<Buffer>;
  whole(): Promise<void>;
}

async function textOf(
  serverDirectory: ServerDirectory,
  found: EngineFound,
  work: ImportWork,
  ctx: DriverContext,
): Promise<{ dump: DumpText; database: string | null }> {
  const source = await work.source();
  if ('server' in source)
    return { dump: await textOfServer(serverDirectory, found, source.server, ctx), database: source.server.database };
  const { format, open } = await inspectSourceFile(source.file);
  const others = { custom: 'an archive of PostgreSQL', rdb: 'a snapshot of Redis', tar: 'a tar archive' } as const;
  if (format !== 'text') throw new DriverError('invalid', `The file is ${others[format]}, and no dump as SQL.`);
  return { dump: { text: open(), whole: () => Promise.resolve() }, database: null };
}

/** The content of a server elsewhere, by the newest program of this host. */
async function textOfServer(
  serverDirectory: ServerDirectory,
  found: EngineFound,
  server: SourceServer,
  ctx: DriverContext,
): Promise<DumpText> {
  const file = path.join(serverDirectory.conf, 'import.cnf');
  await writeFileFor(file, sourceConfiguration(server), await ownerOf(serverDirectory));
  const account = { file, name: '', user: server.user, password: server.password };
  const child = spawnTool(
    await toolAccessOf(serverDirectory),
    toolOf(found, 'mariadb-dump'),
    account,
    [...DUMPED, '--', server.database],
    ctx,
  );
  child.stdin!.end();
  const ended = requireToolSuccess(child, 'The database could not be read.').finally(() => rm(file, { force: true }));
  ended.catch(() => undefined);
  return {
    text: keptOutput(child),
    whole: () =>
      ended.catch((error: DriverError) => {
        throw new DriverError('invalid', error.message);
      }),
  };
}

/** Encrypted unless the address says otherwise. The address was judged: its name is not looked up again. */
function sourceConfiguration({ address, port, user, password, tls }: SourceServer): string {
  if (tls === 'verify-full')
    throw new DriverError('invalid', 'The name of a server of MySQL cannot be verified. Use sslmode=verify-ca.');
  const quote = (text: string): string => `"${text.replace(/[\\"]/g, '\\$&')}"`;
  if (/[\n\r\0]/.test(user + password)) throw new DriverError('invalid', 'The user or password has a line break.');
  return [
    ...['[client]', `host=${address}`, `port=${port}`, 'protocol=tcp', `user=${quote(user)}`],
    ...[`password=${quote(password)}`, 'default-character-set=utf8mb4', tls === 'disable' ? 'skip-ssl' : 'ssl'],
    ...(tls === 'verify-ca' ? ['ssl-ca=/etc/ssl/certs/ca-certificates.crt', 'ssl-verify-server-cert=off'] : []),
    '',
  ].join('\n');
}

function failureAt(statement: DumpStatement, error: unknown, ctx: DriverContext): unknown {
  requireGoing(ctx);
  if (error instanceof DriverError) return new DriverError(error.reason, `Line ${statement.line}: ${error.message}`);
  const { message, sqlState, code } = error as { message: string; sqlState?: string; code?: string };
  if (sqlState === undefined) {
    const lost = `The server of the database ended the connection of the import (${code}).`;
    return Object.assign(new DriverError('invalid', lost), { cause: error });
  }
  const text = message.replace(/ near '[^]*$/, '').replace(/(Duplicate entry|value:?) '[^]*'(?= for )/, "$1 '…'");
  const reason = toSentence(cleanFailureText(text, REASON_CHARACTERS_MAX));
  const head = cleanFailureText(/^[^('=]*/.exec(statement.text)?.[0] ?? '', 80);
  return Object.assign(new DriverError('invalid', `Line ${statement.line}, at \`${head}\`: ${reason}`), {
    cause: error,
  });
}
