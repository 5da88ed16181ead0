// Grants on a bucket that goes.
import type { Context } from '../../../core/context';
import { changeRows, NEW_VERSION } from '../../../db/loop_rows';

/** Keys go on without a bucket that is deleted. */
export async function removeGrants(
  ctx: Context,
  { id, project_id }: { id: string; project_id: string },
): Promise<void> {
  await changeRows(ctx.sql, {
    table: 'bucket_access_keys',
    where: 'bucket_ids @> array[$1]::text[] and project_id = $2 and deleted_at is null',
    values: [id, project_id],
    set: `${NEW_VERSION}, bucket_ids = array_remove(bucket_ids, $1),
      grants = (select coalesce(jsonb_agg(g), '[]') from jsonb_array_elements(grants) g
        where g->>'bucket_id' is distinct from $1)`,
  });
}
