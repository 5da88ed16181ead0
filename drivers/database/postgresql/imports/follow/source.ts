// The source of an import that follows it: sessions there, what it needs, and the publication and the slot that are
// made there. A slot that is forgotten keeps the write-ahead log of the source until its disk is full.
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
const [INSUFFICIENT_PRIVILEGE, OBJECT_IN_USE, TOO_MANY] = ['42501', '55006', '53400'];
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
    try {
      await client.connect();
      return client;
    } catch (error) {
      await client.end().catch(() => undefined);
      last = error as Error;
      if (!/does not support SSL/.test(last.message)) break;
    }
  }
  throw failureAtSource(last);
}

function configOf(server: SourceServer, kind: 'sql' | 'replication', ssl: ClientConfig['ssl']): ClientConfig {
  const timeout = kind === 'sql' ? [`statement_timeout=${STATEMENT_MS}`] : ['statement_timeout=0'];
  return {
    ...{ host: server.address, port: server.port, user: server.user, password: server.password },
    ...{ database: server.database, ssl: ssl ?? false, connectionTimeoutMillis: CONNECT_MS, keepAlive: true },
    ...{ application_name: SOURCE_SESSION, ...(kind === 'replication' && { replication: 'database' }) },
    options: [...SETTINGS, ...timeout].map((one) => `-c ${one}`).join(' '),
  };
}

/** @throws DriverError transient where no session can be opened; what `work` throws */
export async function atSource<T>(server: SourceServer, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await connectToSource(server, 'sql');
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

export function failureAtSource(error: unknown): DriverError {
  if (error instanceof DriverError) return error;
  const text = cleanFailureText((error as Error | undefined)?.message || String((error as DatabaseError)?.code ?? ''));
  const message = `The source does not answer: ${toSentence(text)}`;
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
  order by 2, 3`;

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
  if (missing.length) throw new DriverError('invalid', `The source cannot be followed: ${missing.join('; ')}.`);
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
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'm'`;

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
  await dropAtSource(server, name);
  const list = tables.map((one) => `${sqlIdentifier(one.schema)}.${sqlIdentifier(one.name)}`).join(', ');
  await atSource(server, (client) =>
    client.query(`create publication ${sqlIdentifier(name)} for table only ${list.replaceAll(', ', ', only ')}`),
  ).catch((error: unknown) => {
    throw refusalOf(error, 'The publication could not be made at the source');
  });
  const client = await connectToSource(server, 'replication');
  const late = setTimeout(() => void client.end().catch(() => undefined), SLOT_MS);
  const stop = (): void => void client.end().catch(() => undefined);
  ctx.signal.addEventListener('abort', stop, { once: true });
  try {
    const { rows } = await client.query<{ consistent_point: string; snapshot_name: string }>(
      `CREATE_REPLICATION_SLOT ${sqlIdentifier(name)} LOGICAL pgoutput EXPORT_SNAPSHOT`,
    );
    return { client, start: rows[0]!.consistent_point, snapshot: rows[0]!.snapshot_name };
  } catch (error) {
    await client.end().catch(() => undefined);
    await dropAtSource(server, name).catch(() => undefined);
    // It waits for all transactions that are open, and says nothing meanwhile.
    throw refusalOf(
      error,
      'The replication slot could not be made at the source. Transactions there that stay open for more than 15 ' +
        'minutes prevent it',
    );
  } finally {
    clearTimeout(late);
    ctx.signal.removeEventListener('abort', stop);
  }
}

function refusalOf(error: unknown, what: string): DriverError {
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
export async function dropAtSource(server: SourceServer, name: string): Promise<void> {
  await atSource(server, async (client) => {
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
        await new Promise((resolve) => setTimeout(resolve, 250));
      }
    }
    await client.query(`drop publication if exists ${sqlIdentifier(name)}`);
  }).catch((error: unknown) => {
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

/** Sessions of others end, and new ones cannot write. @throws DriverError invalid where the user may not */
export async function makeReadOnly(client: Client, database: string): Promise<void> {
  try {
    await client.query(`alter database ${sqlIdentifier(database)} set default_transaction_read_only = on`);
  } catch (error) {
    throw refusalOf(error, 'The source could not be made read-only. Stop what writes there, and finish without it');
  }
  // Those that begin later are read-only.
  const { rows: times } = await client.query<{ now: string }>('select clock_timestamp()::text as now');
  for (let left = DROP_TRIES; left > 0; left -= 1) {
    const { rows } = await client.query<{ ended: boolean }>(
      `select pg_terminate_backend(pid) as ended from pg_stat_activity where datname = current_database()
        and pid <> pg_backend_pid() and backend_type = 'client backend' and application_name <> $1
        and backend_start < $2`,
      [SOURCE_SESSION, times[0]!.now],
    );
    if (!rows.length) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new DriverError('transient', 'Sessions at the source do not end.');
}

/** Writes again. The user may not, where it is no owner: nothing was changed then. */
export async function makeWritable(client: Client, database: string): Promise<void> {
  await client.query(`alter database ${sqlIdentifier(database)} reset default_transaction_read_only`);
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
