// Checks of restored data: each table is checked by the engine, and has as many rows as the dump.
import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import type { DatabaseServer } from '../../database';
import { DriverError, checkpoint, type DriverContext } from '../../../core/driver';
import { withBackupFile } from '../../hosted_server/backups';
import type { BackupOfServer } from '../../hosted_server';
import { assertionFailure, splitLines, requireRows, requireTrue, totalRows } from '../../hosted_server/restored_rows';
import { requireServerDirectory, type ServerDirectory } from '../../hosted_server/server_directory';
import type { ProxiedContext } from '../proxied';
import { identifier, serverAccessOf, withLogin, withServer, type Query } from './connection';
import { databaseOf } from './privileges';

const ASSERTION_SECONDS = 60;

/** @throws DriverError invalid, with what is not whole */
export async function verifyRestored(
  engine: ProxiedContext,
  spec: DatabaseServer,
  from: BackupOfServer,
  assertion: string | null,
  ctx: DriverContext,
): Promise<{ rows: number }> {
  const serverDirectory = await requireServerDirectory(engine, spec.id);
  const { found, sequences } = await withServer(
    serverAccessOf(serverDirectory),
    spec,
    (query) => readAll(spec, query, ctx),
    ctx,
  );
  const id = { serverId: from.server_id, backupId: from.backup_id };
  const held = await withBackupFile(engine, serverDirectory, id, (file) => rowsOfDump(file, ctx), ctx);
  const expected = new Map([...held].filter(([table]) => !sequences.has(table)));
  requireRows({ expected, found, isExact: true, unit: 'rows' });
  if (assertion !== null) await requireAssertion(serverDirectory, spec, assertion, ctx);
  return { rows: totalRows(found) };
}

interface Restored {
  /** The rows of each table, after the engine has checked it. */
  found: Map<string, number>;
  sequences: Set<string>;
}

async function readAll(spec: DatabaseServer, query: Query, ctx: DriverContext): Promise<Restored> {
  const database = identifier(databaseOf(spec));
  const tables = await query(
    `SELECT TABLE_NAME AS name, TABLE_TYPE AS type FROM information_schema.TABLES
      WHERE TABLE_SCHEMA = ? ORDER BY BINARY TABLE_NAME`,
    [databaseOf(spec)],
  );
  const found = new Map<string, number>();
  for (const { name, type } of tables.filter(isKept)) {
    checkpoint(ctx);
    const table = `${database}.${identifier(String(name))}`;
    requireWhole(String(name), await query(`CHECK TABLE ${table}`));
    if (type === 'VIEW') continue;
    const past = type === 'SYSTEM VERSIONED' ? ' FOR SYSTEM_TIME ALL' : '';
    const [row] = await query(`SELECT COUNT(*) AS count FROM ${table}${past}`);
    found.set(String(name), Number(row?.count));
  }
  return { found, sequences: new Set(tables.filter((one) => !isKept(one)).map(({ name }) => String(name))) };
}

function isKept({ type }: Record<string, unknown>): boolean {
  return ['BASE TABLE', 'SYSTEM VERSIONED', 'VIEW'].includes(String(type));
}

/** Tables of engines that have no check say so in a note. */
function requireWhole(name: string, answers: readonly Record<string, unknown>[]): void {
  const bad = answers.find(({ Msg_type: type }) => String(type).toLowerCase() === 'error');
  if (bad)
    throw new DriverError('invalid', `The table ${name} of the restored data is damaged: ${String(bad.Msg_text)}`);
}

/** Of mariadb-dump, which gives the settings of the session back. */
const LAST_STATEMENT = /^\/\*!\d+ SET SQL_NOTES=@OLD_SQL_NOTES|^\/\*M!\d+ SET NOTE_VERBOSITY=@OLD_NOTE_VERBOSITY/;

/** Lines of rows begin so since MariaDB 10.5; of tables whose rows stand otherwise nothing is known. */
async function rowsOfDump(file: string, ctx: DriverContext): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  let table: string | null = null;
  let isWhole = false;
  for await (const line of splitLines(createReadStream(file).pipe(createGunzip()) as AsyncIterable<Buffer>)) {
    checkpoint(ctx);
    isWhole = line[0] === 0x2f ? isWhole || LAST_STATEMENT.test(line.toString('utf8')) : isWhole && line.length === 0;
    if (line[0] === 0x49) table = tableOfInsert(line.toString('utf8'), found);
    else if (line[0] === 0x28 && table !== null) found.set(table, (found.get(table) ?? 0) + 1);
    else table = null;
  }
  if (!isWhole) throw new DriverError('invalid', 'The dump of the backup ends too early.');
  return found;
}

function tableOfInsert(line: string, found: Map<string, number>): string | null {
  const match = /^INSERT INTO `((?:[^`]|``)+)`(?: \(.*\))? VALUES$/.exec(line);
  const [, name] = match ?? /^INSERT INTO `((?:[^`]|``)+)`/.exec(line) ?? [];
  const table = name?.replaceAll('``', '`') ?? null;
  if (match === null && table !== null) found.delete(table);
  return match === null ? null : table;
}

/** As the default user: what the owner writes has the rights of the owner. */
async function requireAssertion(
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  text: string,
  ctx: DriverContext,
): Promise<void> {
  const [user] = spec.users;
  const login = { user: user?.username ?? '', password: user?.password ?? '' };
  const work = async (query: Query): Promise<void> => {
    await query(`USE ${identifier(databaseOf(spec))}`);
    await query(`SET SESSION max_statement_time = ${ASSERTION_SECONDS}`);
    await query('SET SESSION TRANSACTION READ ONLY');
    const rows = await query(text);
    requireTrue(rows.map((row) => Object.values(row)[0]));
  };
  await withLogin(serverAccessOf(serverDirectory), login, work, ctx).catch((error: unknown) => {
    if (error instanceof DriverError && error.reason === 'invalid') throw error;
    throw assertionFailure(((error as Error).cause as Error | undefined)?.message ?? (error as Error).message);
  });
}
