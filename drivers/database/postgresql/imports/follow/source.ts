// The source of an import that follows it: sessions there, what it needs, and the publication and the slot that are
// made there. A slot that is forgotten keeps the write-ahead log of the source until its disk is full.
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type ClientConfig, type DatabaseError } from 'pg';
import { DriverError, type DriverContext } from '../../../../../core/driver';
import { cleanFailureText } from '../../../../../core/log/failure_text';
import { toSentence } from '../../../../../core/sentence';
import { isExcluded, type NotTakenOver, type SourceServer } from '../../../imports/import';
import { sqlIdentifier } from '../../session';

const CONNECT_MS = 10_000;
const STATEMENT_MS = 60_000;
const SLOT_MS = 15 * 60_000;
const DROP_TRIES = 40;
const NAMED_MAX = 5;
const TABLES_MAX = 10_000;
const OMISSIONS_MAX = 500;
/** Of the answer to one statement that is not replication. */
const ANSWER_BYTES_MAX = 8 * 2 ** 20;
const REASON_CHARACTERS_MAX = 4_000;
export const INSUFFICIENT_PRIVILEGE = '42501';
const [OBJECT_IN_USE, TOO_MANY] = ['55006', '53400'];
/** As the walreceiver of PostgreSQL sets them, so that text means the same on both sides. */
const SETTINGS = [
  ...['datestyle=ISO', 'intervalstyle=postgres', 'extra_float_digits=3', 'timezone=UTC', 'bytea_output=hex'],
  ...['default_transaction_read_only=off', 'search_path=pg_catalog', 'lock_timeout=30000'],
  // The snapshot of a slot is a transaction that waits.
  'idle_in_transaction_session_timeout=0',
];

/** What sessions of the import are called at the source. */
export const SOURCE_SESSION = 'platform_import';

/**
 * Connects to the address that was judged, and to no other one. The password is in this process alone.
 * @throws DriverError transient
 */
export async function connectToSource(server: SourceServer, kind: 'sql' | 'replication'): Promise<Client> {
  const tls = { servername: server.host, rejectUnauthorized: server.tls.startsWith('verify') };
  const verified = server.tls === 'verify-ca' ? { ...tls, checkServerIdentity: () => undefined } : tls;
  const attempts: ClientConfig['ssl'][] =
    server.tls === 'disable' ? [false] : server.tls === 'prefer' ? [verified, false] : [verified];
  let last: Error | undefined;
  for (const ssl of attempts) {
    const client = new Client(configOf(server, kind, ssl));
    client.on('error', () => undefined); // the current query reports it
    guard(client, kind === 'sql' ? ANSWER_BYTES_MAX : Infinity);
    try {
      await client.connect();
      return client;
    } catch (error) {
      await endQuickly(client);
      last = error as Error;
      if (!/does not support SSL/.test(last.message)) break;
    }
  }
  throw failureAtSource(last);
}

interface PgConnection {
  stream: Duplex;
  on(event: 'sslconnect' | 'readyForQuery', listener: () => void): void;
}

function connectionOf(client: Client): PgConnection {
  return (client as unknown as { connection: PgConnection }).connection;
}

/** What a stranger's server sends ends its connection at most: unreadable messages, and answers of any size. */
function guard(client: Client, bytesMax: number): void {
  const connection = connectionOf(client);
  let bytes = 0;
  const wrap = (): void => {
    const { stream } = connection;
    const emit = stream.emit.bind(stream) as (event: string | symbol, ...args: unknown[]) => boolean;
    stream.emit = (event: string | symbol, ...args: unknown[]) => {
      if (event !== 'data') return emit(event, ...args);
      try {
        bytes += (args[0] as Buffer).length;
        if (bytes > bytesMax) throw new DriverError('invalid', 'The source answers with more than it may have to say.');
        return emit(event, ...args);
      } catch (error) {
        stream.destroy(error as Error);
        return false;
      }
    };
  };
  wrap();
  connection.on('sslconnect', wrap);
  connection.on('readyForQuery', () => {
    bytes = 0;
  });
}

/** A server that is silent does not hold it up; neither does replication, which does not end by itself. */
export async function endQuickly(client: Client): Promise<void> {
  const { stream } = connectionOf(client);
  await Promise.race([client.end().catch(() => undefined), sleep(1_000)]);
  stream.destroy();
}

function configOf(server: SourceServer, kind: 'sql' | 'replication', ssl: ClientConfig['ssl']): ClientConfig {
  const timeout = kind === 'sql' ? [`statement_timeout=${STATEMENT_MS}`] : ['statement_timeout=0'];
  return {
    ...{ host: server.address, port: server.port, user: server.user },
    // As a function it is used as it is: an empty one would be that of this process (PGPASSWORD, ~/.pgpass).
    password: () => server.password,
    ...(kind === 'sql' && { query_timeout: STATEMENT_MS + CONNECT_MS }),
    ...{ database: server.database, ssl: ssl ?? false, connectionTimeoutMillis: CONNECT_MS, keepAlive: true },
    ...{ application_name: SOURCE_SESSION, ...(kind === 'replication' && { replication: 'database' }) },
    options: [...SETTINGS, ...timeout].map((one) => `-c ${one}`).join(' '),
  };
}

/** @throws DriverError transient where no session can be opened; what `work` throws */
export async function atSource<T>(
  server: SourceServer,
  work: (client: Client) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const client = await connectToSource(server, 'sql');
  const stop = (): void => void connectionOf(client).stream.destroy();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    signal?.throwIfAborted();
    return await work(client);
  } finally {
    signal?.removeEventListener('abort', stop);
    await endQuickly(client);
  }
}

export function failureAtSource(error: unknown): DriverError {
  if (error instanceof DriverError) return error;
  const { message: given, code, severity } = (error ?? {}) as Partial<DatabaseError>;
  const text = cleanFailureText(given || (code ?? ''));
  const message = `The source ${severity === undefined ? 'does not answer' : 'refuses'}: ${toSentence(text)}`;
  return Object.assign(new DriverError('transient', message), { cause: error });
}

export interface SourceTable {
  schema: string;
  name: string;
}

interface TableRow extends SourceTable {
  oid: string;
  identity: string;
  has_key: boolean;
  is_owned: boolean;
  persistence: string;
}

const TABLES = `select c.oid::text as oid, n.nspname as schema, c.relname as name, c.relreplident as identity,
    c.relpersistence as persistence, pg_has_role(c.relowner, 'usage') as is_owned,
    exists (select from pg_index i where i.indrelid = c.oid
      and case c.relreplident when 'd' then i.indisprimary when 'i' then i.indisreplident else false end) as has_key
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'r' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
    and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
      and d.deptype = 'e')
  order by 2, 3 limit ${TABLES_MAX + 1}`;

export interface Followed {
  tables: SourceTable[];
  not_taken_over: NotTakenOver[];
}

/** What is followed, and what is not. @throws DriverError invalid with all that the source lacks */
export async function inspectSource(client: Client, excluded: readonly string[]): Promise<Followed> {
  const missing: string[] = [];
  const { rows: settings } = await client.query<{ level: string; version: number; may: boolean; make: boolean }>(
    `select current_setting('wal_level') as level, current_setting('server_version_num')::int as version,
      (select rolsuper or rolreplication from pg_roles where rolname = current_user)
        or exists (select from pg_roles where rolname = 'rds_replication'
          and pg_has_role(current_user, oid, 'member')) as may,
      has_database_privilege(current_database(), 'create') as make`,
  );
  const [{ level, version, may, make } = { level: '', version: 0, may: false, make: false }] = settings;
  if (version < 100_000) throw new DriverError('invalid', 'The source is older than PostgreSQL 10. Use the mode copy.');
  if (level !== 'logical')
    missing.push(`wal_level is ${level} and has to be logical, which takes a restart of the source`);
  if (!may) missing.push('the user has no right to replicate: ALTER ROLE … REPLICATION');
  if (!make) missing.push('the user may not create a publication: GRANT CREATE ON DATABASE … TO …');
  const { rows } = await client.query<TableRow>(TABLES);
  if (rows.length > TABLES_MAX)
    throw new DriverError('invalid', 'The source has more than 10000 tables. Use the mode copy.');
  const followed: Followed = { tables: [], not_taken_over: await furtherOmissions(client) };
  const wanted = rows.filter((one) => !isExcluded(`${one.schema}.${one.name}`, excluded));
  const strange = wanted.filter(({ is_owned }) => !is_owned);
  if (strange.length) missing.push(`the user does not own ${listOf(strange)}, and cannot publish them`);
  const keyless = wanted.filter(
    ({ has_key, identity, persistence }) => !has_key && identity !== 'f' && persistence === 'p',
  );
  if (keyless.length)
    missing.push(
      `${listOf(keyless)} have no primary key, so that changes of their rows cannot be found: add one, use ALTER ` +
        'TABLE … REPLICA IDENTITY FULL, or exclude them',
    );
  const lacking = missing.join('; ').slice(0, REASON_CHARACTERS_MAX);
  if (missing.length) throw new DriverError('invalid', `The source cannot be followed: ${lacking}.`);
  for (const { schema, name, persistence } of wanted)
    if (persistence === 'p') followed.tables.push({ schema, name });
    else
      followed.not_taken_over.push({
        ...{ kind: 'changes', name: `${schema}.${name}` },
        reason: 'It is unlogged: its rows were copied, and later changes are not followed.',
      });
  if (!followed.tables.length) throw new DriverError('invalid', 'The source has no table that could be followed.');
  return followed;
}

const FURTHER = `
  select 'changes' as kind, 'large objects' as name,
      'Large objects were copied, and later changes of them are not followed.' as reason
    where exists (select from pg_largeobject_metadata)
  union all select 'changes', format('%I.%I', n.nspname, c.relname),
      'It is a materialized view: refresh it once the import is complete.'
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'm' limit ${OMISSIONS_MAX}`;

async function furtherOmissions(client: Client): Promise<NotTakenOver[]> {
  return (await client.query<NotTakenOver>(FURTHER)).rows;
}

/** Tables that were made since: their rows are not followed. */
export async function newTables(
  client: Client,
  publication: string,
  excluded: readonly string[],
): Promise<NotTakenOver[]> {
  const { rows } = await client.query<TableRow & { is_known: boolean }>(
    `select found.*, exists (select from pg_publication_tables p where p.pubname = $1
        and p.schemaname = found.schema and p.tablename = found.name) as is_known from (${TABLES}) as found`,
    [publication],
  );
  return rows
    .filter((one) => !one.is_known && one.persistence === 'p' && !isExcluded(`${one.schema}.${one.name}`, excluded))
    .map(({ schema, name }) => ({
      ...{ kind: 'table', name: `${schema}.${name}` },
      reason: 'It was made at the source after the import began, and is not followed.',
    }));
}

export interface Slot {
  /** Holds the snapshot, until it is closed. */
  client: Client;
  snapshot: string;
  start: string;
}

/** Makes both anew. @throws DriverError invalid with what is missing */
export async function createSlot(
  server: SourceServer,
  name: string,
  tables: readonly SourceTable[],
  ctx: DriverContext,
): Promise<Slot> {
  await dropAtSource(server, name, ctx.signal);
  const list = tables.map((one) => `${sqlIdentifier(one.schema)}.${sqlIdentifier(one.name)}`).join(', only ');
  const text = `create publication ${sqlIdentifier(name)} for table only ${list}`;
  await atSource(server, (client) => client.query(text), ctx.signal).catch((error: unknown) => {
    throw refusalAtSource(error, 'The publication could not be made at the source');
  });
  const client = await connectToSource(server, 'replication');
  const stop = (): void => void endQuickly(client);
  const late = setTimeout(stop, SLOT_MS);
  ctx.signal.addEventListener('abort', stop, { once: true });
  try {
    const { rows } = await client.query<{ consistent_point: string; snapshot_name: string }>(
      `CREATE_REPLICATION_SLOT ${sqlIdentifier(name)} LOGICAL pgoutput EXPORT_SNAPSHOT`,
    );
    return { client, start: rows[0]!.consistent_point, snapshot: rows[0]!.snapshot_name };
  } catch (error) {
    await endQuickly(client);
    await dropAtSource(server, name).catch(() => undefined);
    // It waits for all transactions that are open, and says nothing meanwhile.
    throw refusalAtSource(
      error,
      'The replication slot could not be made at the source. Transactions there that stay open for more than 15 ' +
        'minutes prevent it',
    );
  } finally {
    clearTimeout(late);
    ctx.signal.removeEventListener('abort', stop);
  }
}

/** With what is to be granted there. */
export function refusalAtSource(error: unknown, what: string): DriverError {
  if (error instanceof DriverError) return error;
  const { code, message } = error as DatabaseError;
  const hint =
    code === TOO_MANY
      ? ' Raise max_replication_slots there.'
      : code === INSUFFICIENT_PRIVILEGE
        ? ' Grant the right.'
        : '';
  const text = `${what}: ${toSentence(cleanFailureText(message))}${hint}`;
  return Object.assign(new DriverError('invalid', text), { cause: error });
}

/** Removes the slot and the publication; both may be gone. @throws DriverError transient where the source is away */
export async function dropAtSource(server: SourceServer, name: string, signal?: AbortSignal): Promise<void> {
  const drop = async (client: Client): Promise<void> => {
    for (let left = DROP_TRIES; ; left -= 1) {
      const { rows } = await client.query<{ active_pid: number | null }>(
        'select active_pid from pg_replication_slots where slot_name = $1 and database = current_database()',
        [name],
      );
      if (!rows.length) break;
      try {
        if (rows[0]!.active_pid !== null)
          await client.query('select pg_terminate_backend($1)', [rows[0]!.active_pid]).catch(() => undefined);
        await client.query('select pg_drop_replication_slot($1)', [name]);
        break;
      } catch (error) {
        if ((error as DatabaseError).code !== OBJECT_IN_USE || left <= 0) throw error;
        await sleep(250);
      }
    }
    await client.query(`drop publication if exists ${sqlIdentifier(name)}`);
  };
  await atSource(server, drop, signal).catch((error: unknown) => {
    throw failureAtSource(error);
  });
}

export interface SlotState {
  confirmed: string | null;
  wal_status: string;
}

/** null: it is gone. */
export async function findSlot(client: Client, name: string): Promise<SlotState | null> {
  const { rows } = await client.query<SlotState>(
    `select confirmed_flush_lsn::text as confirmed, coalesce(to_jsonb(s) ->> 'wal_status', '') as wal_status
      from pg_replication_slots s where slot_name = $1 and database = current_database()`,
    [name],
  );
  return rows[0] ?? null;
}

/** The end of the log, with everything that was committed before this call on the disk. */
export async function flushedPosition(client: Client): Promise<string> {
  await client.query('select txid_current()');
  const { rows } = await client.query<{ lsn: string }>('select pg_current_wal_flush_lsn()::text as lsn');
  return rows[0]!.lsn;
}

function listOf(tables: readonly SourceTable[]): string {
  const names = tables.slice(0, NAMED_MAX).map(({ schema, name }) => `${schema}.${name}`);
  const rest = tables.length - names.length;
  return rest > 0 ? `${names.join(', ')} and ${rest} more tables` : names.join(', ');
}
