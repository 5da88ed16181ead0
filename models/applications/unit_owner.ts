// Which rows own the units of the runtime: `ins_…` is an instance's, `dep_….build` a deployment's. The kinds say it
// (jobs/job.ts, `units`).
import type { Sql } from '../../core/context';
import { makeRowsDue } from '../../db/loop_rows';
import { named } from '../../db/statement';

/** Rows of the table own the units whose id, up to the first dot, stands in this column. */
export interface UnitOwner {
  table: string;
  column: string;
  /**
   * Of the ids in the column. A replica that was promoted goes on with its server, so `rep` may stand in two tables.
   */
  prefixes: readonly string[];
}

const FREE = '(lease_until is null or lease_until < now())';

/**
 * Makes the row that owns an ended unit due. The desired state is unchanged, so a step that is running on the row is
 * not interrupted.
 * @returns false where there is such a step: it may have inspected the unit before it ended
 */
export async function wakeOwner(sql: Sql, owners: readonly UnitOwner[], unitId: string): Promise<boolean> {
  const [id = ''] = unitId.split('.');
  const prefix = id.split('_')[0] as string;
  for (const { table, column, prefixes } of owners) {
    if (!prefixes.includes(prefix)) continue;
    const where = `${column} = $1 and ${FREE}`;
    if ((await makeRowsDue(sql, { table, where, values: [id] })).length) return true;
  }
  return false;
}

/** Returns the units that no row owns. */
export async function unitsWithoutOwner(
  sql: Sql,
  owners: readonly UnitOwner[],
  unitIds: readonly string[],
): Promise<string[]> {
  const text = `select unit from unnest($1::text[]) as unit where not (${ownedBy(owners, 'unit')})`;
  return (await sql.query<{ unit: string }>(named(text), [unitIds])).map(({ unit }) => unit);
}

/** An SQL condition: a row owns the unit that the term names. */
export function ownedBy(owners: readonly UnitOwner[], term: string): string {
  const some = owners.map(
    ({ table, column }) => `exists (select 1 from ${table} where ${column} = split_part(${term}, '.', 1))`,
  );
  return some.length ? some.join(' or ') : 'false';
}
