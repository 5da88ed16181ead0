// How much of the output of each unit is in the log. Lines and position are written in one transaction, so a line is in
// the log once, whichever process dies.
import type { Sql } from '../../core/context';
import { named } from '../../db/statement';
import { ownedBy, type UnitOwner } from './unit_owner';

/** Position of each of the units that has one. */
export async function logPositions(sql: Sql, unitIds: readonly string[]): Promise<Map<string, string>> {
  const rows = await sql.query<{ unit_id: string; position: string }>(SELECT, [unitIds]);
  return new Map(rows.map(({ unit_id, position }) => [unit_id, position]));
}

const SELECT = named('select unit_id, position from log_positions where unit_id = any($1)');

export interface Move {
  unit_id: string;
  /** null: there was none. */
  from: string | null;
  to: string;
}

// The condition is for a second process that ships the same output by mistake: one of them must not write its lines.
const MOVE =
  named(`with moves as (select * from unnest($1::text[], $2::text[], $3::text[]) as m (unit_id, "from", "to")),
  made as (insert into log_positions (unit_id, position) select unit_id, "to" from moves
    where "from" is null on conflict do nothing returning 1),
  moved as (update log_positions p set position = "to", updated_at = now() from moves m
    where p.unit_id = m.unit_id and p.position = m."from" returning 1)
  select (select count(*) from made) + (select count(*) from moved) as count`);

/** Advances positions, in the transaction of the lines. @throws Error where a position differs from `from` */
export async function moveLogPositions(sql: Sql, moves: readonly Move[]): Promise<void> {
  const [row] = await sql.query<{ count: number }>(MOVE, [
    moves.map(({ unit_id }) => unit_id),
    moves.map(({ from }) => from),
    moves.map(({ to }) => to),
  ]);
  if (row?.count !== moves.length) throw new Error('another process has moved the position of a log');
}

const CLUSTER = `(unit_id like 'pod.%' or unit_id like 'job.%')`;

/**
 * Deletes positions of logs that no longer exist. A position stays while its unit exists, and `<id>.log` while the row
 * that owns it exists: the log of a server may be silent for days, and outlives its unit.
 */
export async function dropLogPositions(
  sql: Sql,
  owners: readonly UnitOwner[],
  unitIds: readonly string[],
  place: 'host' | 'cluster',
): Promise<void> {
  const isOfPlace = place === 'cluster' ? CLUSTER : `not ${CLUSTER}`;
  const text = `delete from log_positions where updated_at < now() - interval '1 day' and unit_id <> all($1)
    and ${isOfPlace} and not (unit_id like '%.log' and (${ownedBy(owners, 'unit_id')}))`;
  await sql.query(named(text), [unitIds]);
}
