// What is compared and carried over once both sides have the same rows: sequences, which are in no slot, and counts.
import type { Client } from 'pg';
import { DriverError } from '../../../../../core/driver';
import { cleanFailureText } from '../../../../../core/log/failure_text';
import type { ImportReport, NotTakenOver } from '../../../imports/import';
import { sqlIdentifier, sqlString } from '../../session';
import { STATEMENT_MS } from './source_session';

const COUNTS_MS = 15_000;
const SEQUENCES_AT_ONCE = 200;
const SEQUENCES = `select n.nspname as schema, c.relname as name from pg_class c join pg_namespace n
    on n.oid = c.relnamespace
  where c.relkind = 'S' and c.relpersistence <> 't' and n.nspname !~ '^pg_' and not exists (select from pg_depend d
    where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
  order by 1, 2`;

/** Once of each, and no more than are listed. */
export function addNotTakenOver(report: ImportReport, one: NotTakenOver): void {
  const isKnown = report.not_taken_over.some(({ kind, name }) => kind === one.kind && name === one.name);
  if (!isKnown && report.not_taken_over.length < 500) report.not_taken_over.push(one);
}

export interface SequenceValue {
  /** Quoted, with its schema. */
  name: string;
  last_value: string;
  is_called: boolean;
}

/** Those of extensions are not among them. */
export async function readSequences(source: Client): Promise<SequenceValue[]> {
  const { rows } = await source.query<{ schema: string; name: string }>(SEQUENCES);
  const names = rows.map(({ schema, name }) => `${sqlIdentifier(schema)}.${sqlIdentifier(name)}`);
  const values: SequenceValue[] = [];
  for (let first = 0; first < names.length; first += SEQUENCES_AT_ONCE) {
    const parts = names
      .slice(first, first + SEQUENCES_AT_ONCE)
      .map((name) => `select ${sqlString(name)} as name, last_value::text, is_called from ${name}`);
    values.push(...(await source.query<SequenceValue>(parts.join(' union all '))).rows);
  }
  return values;
}

/** Those that are not here are reported. */
export async function setSequences(
  values: readonly SequenceValue[],
  target: Client,
  report: ImportReport,
): Promise<void> {
  const { rows } = await target.query<{ name: string }>(
    `select name from unnest($1::text[], $2::bigint[], $3::boolean[]) as one (name, value, is_called)
      where case when to_regclass(name) is null then true
        else setval(to_regclass(name), value, is_called) is null end`,
    [values.map(({ name }) => name), values.map((one) => one.last_value), values.map((one) => one.is_called)],
  );
  for (const { name } of rows)
    addNotTakenOver(report, { kind: 'sequence', name: name.replaceAll('"', ''), reason: 'It is not here.' });
}

/**
 * A transaction that is prepared is committed later, also by a session that is read-only.
 * @throws DriverError transient with their names
 */
export async function requireNoPrepared(source: Client): Promise<void> {
  const { rows } = await source.query<{ gid: string }>(
    'select gid from pg_prepared_xacts where database = current_database() order by prepared limit 5',
  );
  if (!rows.length) return;
  const names = cleanFailureText(rows.map(({ gid }) => gid).join(', '));
  throw new DriverError(
    'transient',
    `The source has prepared transactions (${names}). End them with COMMIT PREPARED or ROLLBACK PREPARED, and finish ` +
      'again.',
  );
}

/** Of both sides, as many as can be counted in a quarter of a minute; the others stay without a count. */
export async function countBoth(source: Client, target: Client, report: ImportReport): Promise<void> {
  for (const table of report.tables) table.rows = null;
  try {
    await countWithin(Date.now() + COUNTS_MS, source, target, report);
  } finally {
    // What is left of the time would end later statements.
    await source.query(`set statement_timeout = ${STATEMENT_MS}`);
    await target.query('set statement_timeout = 0');
  }
}

async function countWithin(until: number, source: Client, target: Client, report: ImportReport): Promise<void> {
  for (const table of report.tables) {
    const left = until - Date.now();
    if (left <= 0) return;
    const count = async (client: Client): Promise<number | null> => {
      await client.query(`set statement_timeout = ${Math.ceil(left)}`);
      const answer = await client
        .query<{ count: string }>(`select count(*) as count from ${table.name}`)
        .catch(() => null);
      return answer && Number(answer.rows[0]!.count);
    };
    const [there, here] = await Promise.all([count(source), count(target)]);
    if (there === null || here === null) continue;
    [table.rows_read, table.rows] = [there, here];
  }
}
