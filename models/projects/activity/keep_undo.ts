// What takes a change back, kept beside its activity entry: sealed, since values may be secrets, and bounded in time
// and size (docs/decisions/0232-undo-of-settings.md).
import type { Context, Sql } from '../../../core/context';
import { limits } from '../../../core/limits';
import type { RevertObstacle, Undo } from '../../../core/undo';
import { named } from '../../../db/statement';
import { sessionOf } from '../../../db/table';
import { sealedColumns } from '../../base/sealed_columns';

const KEEP = named(`insert into activity_undos (id, project_id, undo, created_at) values ($1, $2, $3, $4)`);
const BYTES_MAX = limits.activityUndoBytesMax;
const BYTES_OF_PROJECT = limits.activityUndoBytesPerProject;
/** From this size on, the room of the project is looked at with each entry; smaller ones wait for the sweep. */
const LARGE_BYTES = 16 * 1024;

/** Keeps what takes an entry back, in its transaction. Returns why not, or null. */
export function keepUndo(
  ctx: Context,
  entry: { id: string; project_id: string | null; created_at: string },
  undo: Undo | RevertObstacle | undefined,
): RevertObstacle | null {
  if (typeof undo === 'string') return undo;
  if (!undo || entry.project_id === null) return 'not_kept';
  const text = JSON.stringify(undo);
  if (Buffer.byteLength(text) > BYTES_MAX) return 'too_large';
  const sealed = ctx.secrets.seal(text, sealedColumns.activityUndo.contextOf(entry.id));
  const session = sessionOf(ctx);
  session.send(KEEP, [entry.id, entry.project_id, sealed, entry.created_at]);
  if (sealed.length > LARGE_BYTES) session.send(TRIM, [entry.project_id, BYTES_OF_PROJECT]);
  return null;
}

// Resources with little stay, of the others the newest: who changes one thing over and over, to have old values
// forgotten, takes the room of that one alone. Those that go say so.
const TRIM = named(`with kept as (
    select u.id, octet_length(u.undo) as bytes,
      sum(octet_length(u.undo)) over (partition by a.resource_id order by u.id desc) as of_resource
    from activity_undos u left join activity a on a.id = u.id where u.project_id = $1
  ), summed as (
    select id, sum(bytes) over (order by of_resource, id desc rows unbounded preceding) as bytes from kept
  ), gone as (
    delete from activity_undos where id in (select id from summed where bytes > $2) returning id
  )
  update activity set revert_obstacle = 'expired' where id in (select id from gone)`);
const FULL = named(`select project_id from activity_undos group by project_id having sum(octet_length(undo)) > $1
  limit 100`);

/** Projects with many changes keep what takes back the newest. Returns how many had too much. */
export async function trimUndos(sql: Sql): Promise<number> {
  const full = await sql.query<{ project_id: string }>(FULL, [BYTES_OF_PROJECT]);
  for (const { project_id } of full) await sql.query(TRIM, [project_id, BYTES_OF_PROJECT]);
  return full.length;
}
