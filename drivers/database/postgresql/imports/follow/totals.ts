// What is compared and carried over once both sides have the same rows: sequences, which no slot tells of, and counts.
import type { Client } from 'pg';
import type { ImportReport, NotTakenOver } from '../../../imports/import';
import { sqlIdentifier, sqlString } from '../../session';

const COUNTS_MS = 15_000;
const SEQUENCES = `select n.nspname as schema, c.relname as name from pg_class c join pg_namespace n
    on n.oid = c.relnamespace
  where c.relkind = 'S' and n.nspname !~ '^pg_' and not exists (select from pg_depend d
    where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')`;

/** Once of each, and no more than are listed. */
export function tell(report: ImportReport, one: NotTakenOver): void {
  const isKnown = report.not_taken_over.some(({ kind, name }) => kind === one.kind && name === one.name);
  if (!isKnown && report.not_taken_over.length < 500) report.not_taken_over.push(one);
}

/** Those that are not here are said. */
export async function setSequences(source: Client, target: Client, report: ImportReport): Promise<void> {
  const { rows } = await source.query<{ schema: string; name: string }>(SEQUENCES);
  for (const { schema, name } of rows) {
    const sequence = `${sqlIdentifier(schema)}.${sqlIdentifier(name)}`;
    const at = await source.query<{ last_value: string; is_called: boolean }>(
      `select last_value::text, is_called from ${sequence}`,
    );
    const [found] = at.rows;
    const known = await target.query<{ there: boolean }>('select to_regclass($1) is not null as there', [sequence]);
    if (!known.rows[0]?.there) {
      tell(report, { kind: 'sequence', name: `${schema}.${name}`, reason: 'It is not here.' });
    } else if (found)
      await target.query(`select setval(${sqlString(sequence)}, $1, $2)`, [found.last_value, found.is_called]);
  }
}

/** Of both sides, as many as can be counted in a quarter of a minute; the others stay without a count. */
export async function countBoth(source: Client, target: Client, report: ImportReport): Promise<void> {
  const until = Date.now() + COUNTS_MS;
  for (const table of report.tables) table.rows = null;
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
  await source.query('set statement_timeout = 60000');
}
