// Deletion of a resource that has a bin, and its removal for good.
import type { Context } from '../../core/context';
import { isId } from '../../core/ids';
import { wakeRows } from '../../db/loop_rows';
import { named } from '../../db/statement';
import { hasBin, type DeletedRow, type Kept, type PurgeContext } from './bin';
import { allKinds } from './kinds';
import { endCharge } from './metering';
import { staysDeleted, type Resource, type ResourceClass } from './resource';

/** Deletes a resource: into the bin of its project, or for good where nothing is kept. @returns whether it is kept */
export async function removeToBin(ctx: Context, resource: Resource, kept: Kept = {}): Promise<boolean> {
  const isKept = hasBin(ctx.config);
  if (!isKept) await purgeDependents(ctx, resource.constructor as unknown as ResourceClass, resource, kept.along ?? []);
  await resource.remove(ctx, kept);
  return isKept;
}

/** Removes a resource whose entry has just been removed from the bin. Rows with a loop are torn down by it. */
export async function purgeResource(
  ctx: PurgeContext,
  kind: ResourceClass,
  row: DeletedRow,
  along: readonly string[],
): Promise<void> {
  await purgeDependents(ctx, kind, row, along);
  await endCharge(ctx.sql, row.id);
  if (!kind.keepsRow) await removeRows(ctx, kind, [row.id]);
}

async function purgeDependents(
  ctx: PurgeContext,
  kind: ResourceClass,
  row: DeletedRow,
  along: readonly string[],
): Promise<void> {
  await kind.bin?.purge?.(ctx, row, along);
  for (const one of allKinds()) {
    const ids = along.filter((id) => isId(one.idPrefix, id));
    for (const id of ids) await one.bin?.purge?.(ctx, { id, project_id: row.project_id }, []);
    if (ids.length) await removeRows(ctx, one, ids);
  }
}

async function removeRows(ctx: PurgeContext, kind: ResourceClass, ids: readonly string[]): Promise<void> {
  const rows = { table: kind.table, where: 'id = any($1) and deleted_at is not null', values: [ids] };
  if (staysDeleted(ctx, kind)) await wakeRows(ctx.sql, rows);
  else await ctx.sql.query(named(`delete from ${rows.table} where ${rows.where}`), rows.values);
}
