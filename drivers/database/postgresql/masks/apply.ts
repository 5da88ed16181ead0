// Applies the rules of a mask, in one transaction of the owner of each table. Rules are texts of users, and checks,
// indexes and generated columns run their functions too: none of it has more rights than the users have together.
import { randomBytes } from 'node:crypto';
import type { DatabaseError } from 'pg';
import type { MaskRule } from '../../../../core/mask_rules';
import { cleanFailureText } from '../../../../core/log/failure_text';
import { toSentence } from '../../../../core/sentence';
import { DriverError, type DriverContext } from '../../../../core/driver';
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
} from '../../masks/mask';
import { roles, type Cluster } from '../cluster';
import { inSession, isUnavailable, sqlIdentifier, sqlString, type Session } from '../session';
import { createMemberOfAll } from '../upgrades/loader';
import { readCatalog, type OwnedTable } from './catalog';

/** A table of the largest package. */
const STATEMENT_MS = 6 * 3_600_000;
const REASON_CHARACTERS_MAX = 240;
const KEY_BYTES = 32;
const loader = sqlIdentifier(roles.loader);
/** Statements may hold values of rules, and errors values of rows. */
const SETTINGS = ['standard_conforming_strings=on', 'row_security=off', 'idle_in_transaction_session_timeout=0'];

/** @throws DriverError invalid with the rule that does not fit; no value is changed then */
export async function applyMask(
  cluster: Cluster,
  database: string,
  rules: readonly MaskRule[],
  ctx: DriverContext,
): Promise<MaskReport> {
  const plan = await inSession(cluster, { database }, async (session) => {
    const catalog = await readCatalog(session);
    const tables = planMask(catalog, rules) as OwnedMask[];
    return { tables, unmasked: unmaskedColumns(catalog, tables) };
  });
  await createOwner(cluster, database);
  const suspended = await suspend(cluster, database, plan.tables);
  const target = { database, user: roles.loader, statementMs: STATEMENT_MS, settings: SETTINGS };
  await inSession(cluster, target, (session) => untilStopped(session, ctx, () => maskAll(session, plan.tables)));
  await inSession(cluster, { database }, async (session) => {
    for (const { resuming } of suspended) await session.query(resuming);
    await session.query(`drop owned by ${loader}`);
  });
  await inSession(cluster, {}, (session) => session.query(`drop role ${loader}`));
  return { unmasked: plan.unmasked };
}

interface OwnedMask extends MaskedTable {
  table: OwnedTable;
}

/** The role of the rules. No trigger fires for it, which only a superuser can say; it cannot take that back. */
async function createOwner(cluster: Cluster, database: string): Promise<void> {
  await inSession(cluster, {}, async (session) => {
    await createMemberOfAll(session);
    await session.query(`alter role ${loader} set session_replication_role = replica`);
    await session.query(`grant connect on database ${sqlIdentifier(database)} to ${loader}`);
  });
}

interface Suspended {
  suspending: string;
  resuming: string;
}

// Triggers and rules that fire for replicas too, and policies that hold for owners, would keep rows from their values.
const SUSPENDED = `
with recursive tree (oid) as (select unnest($1::text[]::regclass[])::oid
  union select h.inhrelid from pg_inherits h join tree on h.inhparent = tree.oid),
tables as (select c.* from pg_class c join tree on tree.oid = c.oid)
select format('alter table %s disable trigger %I', c.oid::regclass, t.tgname) as suspending,
    format('alter table %s enable %s trigger %I', c.oid::regclass,
      case t.tgenabled when 'A' then 'always' else 'replica' end, t.tgname) as resuming
  from tables c join pg_trigger t on t.tgrelid = c.oid where not t.tgisinternal and t.tgenabled in ('A', 'R')
union all select format('alter table %s disable rule %I', c.oid::regclass, r.rulename),
    format('alter table %s enable %s rule %I', c.oid::regclass,
      case r.ev_enabled when 'A' then 'always' else 'replica' end, r.rulename)
  from tables c join pg_rewrite r on r.ev_class = c.oid where r.ev_enabled in ('A', 'R') and r.ev_type <> '1'
union all select format('alter table %s no force row level security', c.oid::regclass),
    format('alter table %s force row level security', c.oid::regclass)
  from tables c where c.relforcerowsecurity`;

async function suspend(cluster: Cluster, database: string, tables: readonly OwnedMask[]): Promise<Suspended[]> {
  return inSession(cluster, { database }, async (session) => {
    const names = tables.map(({ table }) => table.identifier);
    const { rows } = await session.query<Suspended>(SUSPENDED, [names]);
    for (const { suspending } of rows) await session.query(suspending);
    return rows;
  });
}

/** All or nothing. The key is known to this call alone. */
async function maskAll(session: Session, tables: readonly OwnedMask[]): Promise<void> {
  const key = randomBytes(KEY_BYTES);
  await session.query('begin');
  for (const masked of tables) {
    try {
      await session.query(`set local role ${sqlIdentifier(masked.table.owner)}`);
      await runExpressions(session, masked);
      await replaceValues(session, masked, key);
      await session.query('reset role');
    } catch (error) {
      throw failureOf(masked, error);
    }
  }
  await session.query('commit');
}

/** First, in a statement of their own: they see the values of before, and nothing that other rules are given. */
async function runExpressions(session: Session, { table, columns }: OwnedMask): Promise<void> {
  const own = columns.filter(({ rule }) => rule === 'expression');
  if (!own.length) return;
  const [schema = ''] = table.identifier.split(/\.(?=(?:[^"]*"[^"]*")*[^"]*$)/);
  await session.query(`set local search_path = ${schema}, public`);
  const changes = own.map(({ column, value }) => `${sqlIdentifier(column.name)} = (\n${value}\n)`);
  // By the extended protocol, which takes one statement.
  const statement = (text: string) => ({ text, queryMode: 'extended' });
  const update = `update ${table.identifier} set ${changes.join(', ')}`;
  // What does not fit is said with the words of PostgreSQL before an expression has seen a value.
  await session.query(statement(`explain ${update}`)).catch((error: unknown) => {
    throw Object.assign(error as Error, { sawNoValue: true });
  });
  await session.query(statement(update));
}

/** Values go as parameters, which no function of a user can read. */
async function replaceValues(session: Session, { table, columns }: OwnedMask, key: Buffer): Promise<void> {
  const own = columns.filter(({ rule }) => rule !== 'expression');
  if (!own.length) return;
  await session.query('set local search_path = pg_catalog');
  const values: (Buffer | string)[] = [];
  const parameter = (value: Buffer | string): string => `$${values.push(value)}`;
  const keyed = own.some(({ rule }) => rule === 'hash' || rule.startsWith('fake_')) ? `${parameter(key)}::bytea` : '';
  const changes = own.map((one) => `${sqlIdentifier(one.column.name)} = ${newValue(one, keyed, parameter)}`);
  await session.query(`update ${table.identifier} set ${changes.join(', ')}`, values);
}

function newValue({ column, rule, value, digits }: MaskedColumn, key: string, parameter: (value: string) => string) {
  const name = sqlIdentifier(column.name);
  if (rule === 'set_null') return 'null';
  if (rule === 'constant') return parameter(value ?? '');
  // Equal by a collation or a type without case, equal in the hash.
  const text = column.type === 'citext' || column.type.endsWith('.citext') ? `lower(${name}::text)` : `${name}::text`;
  const hash = `encode(sha256(${key} || convert_to(${text}, 'UTF8')), 'hex')`;
  if (rule === 'hash') return column.kind === 'uuid' ? `left(${hash}, 32)::uuid` : `left(${hash}, ${digits})`;
  const fake =
    rule === 'fake_email'
      ? `'${EMAIL_PREFIX}' || left(${hash}, ${digits}) || '${EMAIL_SUFFIX}'`
      : fakeName(hash, column.length, digits);
  return `case when ${name} is not null then ${fake} end`;
}

function fakeName(hash: string, length: number | null, digits: number): string {
  const part = (names: string, from: number): string => {
    const list = names.split(',');
    const chosen = `1 + ('x' || substr(${hash}, ${from}, 4))::bit(16)::int % ${list.length}`;
    return `(array[${list.map(sqlString).join(', ')}])[${chosen}]`;
  };
  const name = `${part(FIRST_NAMES, 1)} || ' ' || ${part(LAST_NAMES, 5)}`;
  if (digits > 0) return `${name} || ' ' || right(${hash}, ${digits})`;
  return length === null ? name : `left(${name}, ${length})`;
}

/** A statement may run for hours: who stops the work ends its session. */
async function untilStopped<T>(session: Session, ctx: DriverContext, work: () => Promise<T>): Promise<T> {
  const stop = (): void => void (session as unknown as { end(): Promise<void> }).end().catch(() => undefined);
  ctx.signal.addEventListener('abort', stop, { once: true });
  try {
    return await work();
  } catch (error) {
    if (!ctx.signal.aborted) throw error;
    throw Object.assign(new DriverError('transient', 'The mask was stopped before it was complete.'), { cause: error });
  } finally {
    ctx.signal.removeEventListener('abort', stop);
  }
}

function failureOf(masked: OwnedMask, error: unknown): unknown {
  const { code = '', message, sawNoValue } = error as DatabaseError & { sawNoValue?: true };
  if (isUnavailable(error) || !/^[0-9A-Z]{5}$/.test(code)) return error;
  // The disk, memory, and what an operator does.
  if (/^(53|57P|58|XX)/.test(code))
    return Object.assign(new DriverError(code === '53100' ? 'capacity' : 'transient', toSentence(message)), {
      cause: error,
    });
  const text = sawNoValue && !code.startsWith('22') ? message : withoutValues(code, message);
  // Without the error as its cause, which the log would show.
  return maskFailure(masked, toSentence(cleanFailureText(text, REASON_CHARACTERS_MAX)));
}

/** Values of rows stand in errors of conversions, of names that are made of values, and in those of functions. */
function withoutValues(code: string, message: string): string {
  if (code.startsWith('22')) return message.replace(/"[^]*"/g, '"…"');
  // Constraints and missing rights are said with names of the schema.
  return code.startsWith('23') || code === '42501' ? message : `PostgreSQL reports the error ${code}`;
}
