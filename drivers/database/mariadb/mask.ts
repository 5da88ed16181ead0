// Masked copies. The backup is loaded into a server whose users are not made yet; the rules are applied there; then a
// dump of it is loaded into an empty server. So no page, undo log, redo log or statistics of before is in the files of
// the copy (docs/decisions/0251). Until that server is in place there is no other one: a call that was killed begins
// anew.
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { MaskRule } from '../../../core/mask_rules';
import { DriverError, checkpoint, type DriverContext } from '../../../core/driver';
import { cleanFailureText } from '../../../core/log/failure_text';
import { toSentence } from '../../../core/sentence';
import type { DatabaseServer } from '../../database';
import type { BackupOfServer } from '../../hosted_server';
import { retryUntilReady } from '../../hosted_server/readiness';
import {
  findServerDirectory,
  readNote,
  requireServerDirectory,
  writeNote,
  type ServerDirectory,
} from '../../hosted_server/server_directory';
import { nextDisk } from '../disk_size';
import {
  EMAIL_PREFIX,
  EMAIL_SUFFIX,
  FIRST_NAMES,
  LAST_NAMES,
  maskFailure,
  planMask,
  unmaskedColumns,
  type MaskedColumn,
  type MaskedTable,
  type MaskReport,
} from '../masks/mask';
import type { ProxiedContext } from '../proxied';
import { replaceServerData, requireProgram } from '../proxied_server';
import { notesOf } from '../server_notes';
import { restore, withLoadMemory } from './backup';
import { identifier, serverAccessOf, withLogin, withServer, type Query } from './connection';
import { dump, dumpTriggers } from './dump';
import { load } from './load';
import { readCatalog, type MariadbTable } from './mask_catalog';
import { databaseOf, grantedDatabase } from './privileges';
import { install, start, stop, waitUntilReady } from './server';
import { closeToolAccount, openToolAccount, toolAccessOf } from './tool';

const STATEMENT_SECONDS = 6 * 3_600;
const REASON_CHARACTERS_MAX = 240;
const KEY_BYTES = 32;
const SQL_MODE = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION';

/**
 * `spec.running` is false: the server is stopped afterwards, and has no users.
 * @throws DriverError invalid with the rule that does not fit
 */
export async function copyMasked(
  engine: ProxiedContext,
  spec: DatabaseServer,
  from: BackupOfServer,
  rules: readonly MaskRule[],
  ctx: DriverContext,
): Promise<MaskReport> {
  const present = await findServerDirectory(engine, spec.id);
  const done = typeof present === 'string' ? null : await readNote<MaskReport>(present, 'masked');
  if (done !== null) return done;
  const attempt = randomBytes(6).toString('hex');
  await restore(engine, spec, { ...from, id: attempt, until: null }, ctx);
  const serverDirectory = await requireServerDirectory(engine, spec.id);
  const files = ['mask.sql.gz', 'mask_triggers.sql.gz'].map((name) => path.join(serverDirectory.path, name));
  try {
    const report = await maskInto(engine, serverDirectory, spec, { rules, files }, ctx);
    await stop(engine, spec.id, ctx);
    await replaceWith(engine, serverDirectory, spec, { key: `mask-${attempt}`, files }, ctx);
    await writeNote(serverDirectory, 'masked', report);
    return report;
  } finally {
    for (const file of files) await rm(file, { force: true });
    if (!ctx.signal.aborted) await stop(engine, spec.id, ctx);
  }
}

/** Masks the restored data, and dumps them: the rows, and the triggers, which are set aside meanwhile. */
async function maskInto(
  engine: ProxiedContext,
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  { rules, files: [rows = '', triggers = ''] }: { rules: readonly MaskRule[]; files: string[] },
  ctx: DriverContext,
): Promise<MaskReport> {
  const found = requireProgram(engine, spec.version);
  const server = withLoadMemory(spec);
  await retryUntilReady(
    () => start(engine, serverDirectory, server, ctx),
    () => waitUntilReady(engine, serverDirectory, server, ctx),
    ctx,
  );
  const asAdmin = <T>(work: (query: Query) => Promise<T>): Promise<T> =>
    withServer(serverAccessOf(serverDirectory), spec, work, ctx);
  const catalog = await asAdmin((query) => readCatalog(databaseOf(spec), query));
  const tables = planMask(catalog, rules) as OwnedMask[];
  const access = await toolAccessOf(serverDirectory);
  await dumpTriggers(access, spec, found, triggers, ctx);
  const account = await asAdmin(async (query) => {
    for (const name of catalog.triggers)
      await query(`DROP TRIGGER ${identifier(databaseOf(spec))}.${identifier(name)}`);
    const made = await openToolAccount(access, spec.id, 'load', query);
    await query(`GRANT ALL PRIVILEGES ON ${grantedDatabase(spec)}.* TO ${made.name}`);
    return made;
  });
  try {
    await withLogin(access, account, (query) => maskAll(databaseOf(spec), tables, query, ctx), ctx);
  } finally {
    await closeToolAccount(account, asAdmin);
  }
  await dump(access, spec, found, rows, ctx);
  return { unmasked: unmaskedColumns(catalog, tables) };
}

async function replaceWith(
  engine: ProxiedContext,
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  { key, files }: { key: string; files: string[] },
  ctx: DriverContext,
): Promise<void> {
  const found = requireProgram(engine, spec.version);
  await replaceServerData(
    serverDirectory,
    {
      key,
      disk: await nextDisk(engine, serverDirectory, spec),
      now: withLoadMemory(spec),
      before: spec,
      fill: (data) => install(engine, spec, data, ctx),
      start: (server) => start(engine, serverDirectory, server, ctx),
      waitUntilReady: (server) => waitUntilReady(engine, serverDirectory, server, ctx),
      stop: () => stop(engine, spec.id, ctx),
      load: async () => {
        const access = await toolAccessOf(serverDirectory);
        await load({ access, notes: notesOf(serverDirectory) }, spec, found, files, ctx);
      },
    },
    ctx,
  );
}

interface OwnedMask extends MaskedTable {
  table: MariadbTable;
}

/** The key is known to this call alone. */
async function maskAll(
  database: string,
  tables: readonly OwnedMask[],
  query: Query,
  ctx: DriverContext,
): Promise<void> {
  const key = randomBytes(KEY_BYTES).toString('hex');
  await query(`USE ${identifier(database)}`);
  for (const setting of [
    `SESSION max_statement_time = ${STATEMENT_SECONDS}`,
    'NAMES utf8mb4',
    `sql_mode = '${SQL_MODE}'`,
  ])
    await query(`SET ${setting}`);
  await query('SET foreign_key_checks = 0');
  for (const masked of tables) {
    checkpoint(ctx);
    try {
      await runExpressions(masked, query);
      await replaceValues(masked, key, query);
      if (masked.table.isVersioned) await query(`DELETE HISTORY FROM ${masked.table.identifier}`);
    } catch (error) {
      throw failureOf(masked, error);
    }
  }
}

/** First, in a statement of their own: no function of a user runs while the key is in a statement. */
async function runExpressions({ table, columns }: OwnedMask, query: Query): Promise<void> {
  const own = columns.filter(({ rule }) => rule === 'expression');
  if (!own.length) return;
  const changes = own.map(({ column, value }) => `${identifier(column.name)} = (\n${value}\n)`);
  await query(`UPDATE ${table.identifier} SET ${changes.join(', ')}`);
}

async function replaceValues({ table, columns }: OwnedMask, key: string, query: Query): Promise<void> {
  const own = columns.filter(({ rule }) => rule !== 'expression');
  if (!own.length) return;
  const values: string[] = [];
  const parameter = (value: string): string => {
    values.push(value);
    return '?';
  };
  const changes = own.map(
    (one) => `${identifier(one.column.name)} = ${newValue(one, () => parameter(key), parameter)}`,
  );
  await query(`UPDATE ${table.identifier} SET ${changes.join(', ')}`, values);
}

function newValue(
  { column, rule, value, digits }: MaskedColumn,
  key: () => string,
  parameter: (value: string) => string,
): string {
  const name = identifier(column.name);
  if (rule === 'set_null') return 'NULL';
  if (rule === 'constant') return parameter(value ?? '');
  // Most collations know no case: what is equal there is equal in the hash.
  const hash = (): string => `SHA2(CONCAT(${key()}, CONVERT(LOWER(${name}) USING utf8mb4)), 256)`;
  if (rule === 'hash')
    return column.kind === 'uuid' ? `CAST(LEFT(${hash()}, 32) AS UUID)` : `LEFT(${hash()}, ${digits})`;
  if (rule === 'fake_email') return `CONCAT('${EMAIL_PREFIX}', LEFT(${hash()}, ${digits}), '${EMAIL_SUFFIX}')`;
  const part = (names: string, at: number): string => {
    const list = names.split(',');
    const number = `CAST(CONV(SUBSTRING(${hash()}, ${at}, 4), 16, 10) AS UNSIGNED)`;
    return `ELT(1 + ${number} % ${list.length}, ${list.map((one) => `'${one}'`).join(', ')})`;
  };
  const full = `CONCAT(${part(FIRST_NAMES, 1)}, ' ', ${part(LAST_NAMES, 5)}`;
  if (digits > 0) return `${full}, ' ', RIGHT(${hash()}, ${digits}))`;
  return column.length === null ? `${full})` : `LEFT(${full}), ${column.length})`;
}

function failureOf(masked: OwnedMask, error: unknown): unknown {
  const { message, sqlState, code } = error as { message: string; sqlState?: string; code?: string };
  if (sqlState === undefined || error instanceof DriverError) return error;
  if (code === 'ER_DISK_FULL' || code === 'ER_RECORD_FILE_FULL')
    return Object.assign(new DriverError('capacity', 'The disk of the copy is full.'), { cause: error });
  // Without the error as its cause, which the log would show.
  return maskFailure(masked, reasonOf(code ?? '', message));
}

/** Values of rows stand in errors of conversions, and in those that functions raise. */
function reasonOf(code: string, message: string): string {
  if (code === 'ER_SIGNAL_EXCEPTION' || code === 'ER_SIGNAL_NOT_FOUND') return 'A function raised an error.';
  const text = message
    .replace(/ near '[^]*$/, '')
    .replace(/(Duplicate entry|value:?) '[^]*'(?= for )/, "$1 '…'")
    .replace(/value: '[^]*$/, "value: '…'");
  return toSentence(cleanFailureText(text, REASON_CHARACTERS_MAX));
}
