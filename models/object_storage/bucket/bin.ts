// Buckets in the bin. A bucket is deleted empty, so what is kept are its settings and what access keys may do in it.
import type { Grant } from '../../../core/protocols/buckets/bucket_access';
import type { Context } from '../../../core/context';
import { changeRows, NEW_VERSION } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import { isKept, type Bin } from '../../base/bin';
import type { Bucket } from '../bucket';

/** What a key might do in a bucket. */
interface KeyGrants {
  id: string;
  grants: Grant[];
}

/** Also those in the bin: none comes back with a grant on what is gone, or without one on what is there again. */
const PRESENT = `(deleted_at is null or ${isKept('bucket_access_keys')})`;
const OF_BUCKET = `bucket_ids @> array[$1]::text[] and project_id = $2 and ${PRESENT}`;
const GRANTS = named(`select id, (select jsonb_agg(g) from jsonb_array_elements(grants) g
    where g->>'bucket_id' = $1) as grants
  from bucket_access_keys where ${OF_BUCKET} order by id for update`);

export const bucketBin: Bin<Bucket> = {
  nameFormat: 'slug',
  async restore(ctx, { id, project_id }, { keys }) {
    const had = keys as KeyGrants[];
    let back = 0;
    for (const key of had) {
      const written = await changeRows(ctx.sql, {
        table: 'bucket_access_keys',
        where: `id = $1 and project_id = $2 and ${PRESENT}`,
        values: [key.id, project_id, id, JSON.stringify(key.grants)],
        set: `${NEW_VERSION}, bucket_ids = bucket_ids || $3::text, grants = grants || $4::jsonb`,
      });
      back += written.length;
    }
    if (back === had.length) return [];
    return [`${had.length - back} of the access keys that were allowed to use the bucket are gone.`];
  },
};

/** Access keys stay, without the grants on a deleted bucket. @returns what they had */
export async function removeGrants(
  ctx: Context,
  { id, project_id }: { id: string; project_id: string },
): Promise<KeyGrants[]> {
  const had = await ctx.sql.query<KeyGrants>(GRANTS, [id, project_id]);
  await changeRows(ctx.sql, {
    table: 'bucket_access_keys',
    where: OF_BUCKET,
    values: [id, project_id],
    set: `${NEW_VERSION}, bucket_ids = array_remove(bucket_ids, $1),
      grants = (select coalesce(jsonb_agg(g), '[]') from jsonb_array_elements(grants) g
        where g->>'bucket_id' is distinct from $1)`,
  });
  return had;
}
