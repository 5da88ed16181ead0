// An application or bucket that is the origin of a CDN zone is not deleted.
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { named } from '../../db/statement';

const ZONES = {
  application: named(`select id from cdn_zones
    where project_id = $2 and origin->>'application_id' = $1 and deleted_at is null order by id`),
  bucket: named(`select id from cdn_zones
    where project_id = $2 and origin->>'bucket_id' = $1 and deleted_at is null order by id`),
};

/** @throws resource_in_use */
export async function requireNoZoneBefore(
  ctx: Context,
  type: 'application' | 'bucket',
  { id, project_id }: { id: string; project_id: string },
): Promise<void> {
  const zones = await ctx.sql.query<{ id: string }>(ZONES[type], [id, project_id]);
  if (!zones.length) return;
  const dependents = zones.map((zone) => ({ type: 'cdn_zone', id: zone.id }));
  throw problem('resource_in_use', `The ${type} is the origin of a CDN zone.`, { dependents });
}
