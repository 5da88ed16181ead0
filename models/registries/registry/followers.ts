// Applications that are deployed when a tag moves.
import type { Sql } from '../../../core/context';
import { wakeRows } from '../../../db/loop_rows';

/** Their jobs look at the tag and decide; one too many does no harm, so the host of the reference is not compared. */
const FOLLOWERS = `enabled and id in (select id from applications where project_id = $1 and deleted_at is null
  and source ->> 'type' = 'image' and regexp_replace(source ->> 'image', '^[^/]+/', '') = any($2::text[]))`;

/** After a push of `tag` to a repository of the registry. */
export async function wakeFollowers(
  sql: Sql,
  registry: { name: string; project_id: string },
  repository: string,
  tag: string,
): Promise<void> {
  const name = `${registry.name}/${repository}`;
  const names = [`${name}:${tag}`, ...(tag === 'latest' ? [name] : [])];
  await wakeRows(sql, { table: 'auto_deploys', where: FOLLOWERS, values: [registry.project_id, names] });
}
