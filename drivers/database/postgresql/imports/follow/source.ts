// The source of an import that follows it: what it needs, and the publication and the slot that are made there. A slot
// that is forgotten keeps the write-ahead log of the source until its disk is full.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, DatabaseError } from 'pg';
import { DriverError, type DriverContext } from '../../../../../core/driver';
import { cleanFailureText } from '../../../../../core/log/failure_text';
import { toSentence } from '../../../../../core/sentence';
import { isExcluded, type NotTakenOver, type SourceServer } from '../../../imports/import';
import { sqlIdentifier } from '../../session';
import { atSource, connectToSource, disableTimeouts, endQuickly, failureAtSource } from './source_session';

const SLOT_MS = 15 * 60_000;
const DROP_TRIES = 40;
const NAMED_MAX = 5;
const TABLES_MAX = 10_000;
const OMISSIONS_MAX = 500;
const REASON_CHARACTERS_MAX = 4_000;
export const INSUFFICIENT_PRIVILEGE = '42501';
const [OBJECT_IN_USE, TOO_MANY] = ['55006', '53400'];

export interface SourceTable {
  schema: string;
  name: string;
}

interface TableRow extends SourceTable {
  oid: string;
  identity: string;
  has_key: boolean;
  is_owned: boolean;
  is_unidentified: boolean;
  persistence: string;
}

const [POSTGRESQL_12, POSTGRESQL_17, POSTGRESQL_18] = [120_000, 170_000, 180_000];

/**
 * Rows that are identified by generated columns. From 18 on, stored ones are published, and where one is not, each
 * update of the table fails at the source (CheckCmdReplicaIdentity); before, they are missing in what is sent.
 */
function unidentifiedIn(version: number): string {
  if (version < POSTGRESQL_12) return 'false';
  const isIdentifying =
    version < POSTGRESQL_18
      ? `exists (select from pg_index i where i.indrelid = c.oid and a.attnum = any (i.indkey::int2[])
          and case c.relreplident when 'd' then i.indisprimary when 'i' then i.indisreplident else false end)`
      : `c.relreplident = 'f' and a.attgenerated = 'v'`;
  return `exists (select from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    and a.attgenerated <> '' and ${isIdentifying})`;
}

const tablesIn = (
  version: number,
): string => `select c.oid::text as oid, n.nspname as schema, c.relname as name, c.relreplident as identity,
    c.relpersistence as persistence, pg_has_role(c.relowner, 'usage') as is_owned,
    ${unidentifiedIn(version)} as is_unidentified,
    exists (select from pg_index i where i.indrelid = c.oid
      and case c.relreplident when 'd' then i.indisprimary when 'i' then i.indisreplident else false end) as has_key
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'r' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
    and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
      and d.deptype = 'e')
  order by 2, 3 limit ${TABLES_MAX + 1}`;

interface SourceSettings {
  level: string;
  version: number;
  may: boolean;
  make: boolean;
  standby: boolean;
}

export interface Followed {
  tables: SourceTable[];
  not_taken_over: NotTakenOver[];
}

/** What is followed, and what is not. @throws DriverError invalid with all that the source lacks */
export async function inspectSource(client: Client, excluded: readonly string[]): Promise<Followed> {
  const missing: string[] = [];
  const { rows: settings } = await client.query<SourceSettings>(
    `select current_setting('wal_level') as level, current_setting('server_version_num')::int as version,
      pg_is_in_recovery() as standby,
      (select rolsuper or rolreplication from pg_roles where rolname = current_user)
        or exists (select from pg_roles where rolname = 'rds_replication'
          and pg_has_role(current_user, oid, 'member')) as may,
      has_database_privilege(current_database(), 'create') as make`,
  );
  const { level, version, may, make, standby } = settings[0]!;
  if (standby)
    throw new DriverError('invalid', 'The source is a standby, where nothing can be published. Follow its primary.');
  if (version < 100_000) throw new DriverError('invalid', 'The source is older than PostgreSQL 10. Use the mode copy.');
  if (level !== 'logical')
    missing.push(`wal_level is ${level} and has to be logical, which takes a restart of the source`);
  if (!may) missing.push('the user has no right to replicate: ALTER ROLE … REPLICATION');
  if (!make) missing.push('the user may not create a publication: GRANT CREATE ON DATABASE … TO …');
  const { rows } = await client.query<TableRow>(tablesIn(version));
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
  const unidentified = wanted.filter(({ is_unidentified, persistence }) => is_unidentified && persistence === 'p');
  if (unidentified.length)
    missing.push(
      `${listOf(unidentified)} have generated columns in their replica identity, which are not sent: use ALTER TABLE ` +
        '… REPLICA IDENTITY USING INDEX with an index of other columns, or exclude them',
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
        and p.schemaname = found.schema and p.tablename = found.name) as is_known from (${tablesIn(0)}) as found`,
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
  const publish = async (client: Client): Promise<number> => {
    const version = await versionOf(client);
    const columns = version < POSTGRESQL_18 ? '' : ' with (publish_generated_columns = stored)';
    await client.query(`create publication ${sqlIdentifier(name)} for table only ${list}${columns}`);
    return version;
  };
  const version = await atSource(server, publish, ctx.signal).catch((error: unknown) => {
    throw refusalAtSource(error, 'The publication could not be made at the source');
  });
  // Standbys that synchronize slots get it, too.
  const snapshot = version < POSTGRESQL_17 ? 'EXPORT_SNAPSHOT' : `(SNAPSHOT 'export', FAILOVER)`;
  const client = await connectToSource(server, 'replication');
  const stop = (): void => void endQuickly(client);
  const late = setTimeout(stop, SLOT_MS);
  ctx.signal.addEventListener('abort', stop, { once: true });
  try {
    await disableTimeouts(client);
    const { rows } = await client.query<{ consistent_point: string; snapshot_name: string }>(
      `CREATE_REPLICATION_SLOT ${sqlIdentifier(name)} LOGICAL pgoutput ${snapshot}`,
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

async function versionOf(client: Client): Promise<number> {
  const { rows } = await client.query<{ version: number }>(
    `select current_setting('server_version_num')::int as version`,
  );
  return rows[0]!.version;
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
  /** From PostgreSQL 17 on, such as `idle_timeout`. */
  invalidation_reason: string | null;
}

/** After a failover, an address may lead to one for a while. */
export async function isStandby(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ standby: boolean }>('select pg_is_in_recovery() as standby');
  return rows[0]!.standby;
}

/** null: it is gone. */
export async function findSlot(client: Client, name: string): Promise<SlotState | null> {
  const { rows } = await client.query<SlotState>(
    `select confirmed_flush_lsn::text as confirmed, coalesce(to_jsonb(s) ->> 'wal_status', '') as wal_status,
        to_jsonb(s) ->> 'invalidation_reason' as invalidation_reason
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
