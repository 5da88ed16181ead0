// The registry of the platform itself: images of releases, in a repository for each application. It belongs to no
// project: no account has a right to it, no list shows it, and its size is not limited.
import type { Sql } from '../../../core/context';
import { mintId, timeOfId } from '../../../core/ids';
import { named } from '../../../db/statement';
import { wakeRows } from '../../../db/loop_rows';
import { Registry } from '../registry';
import { PLATFORM_PROJECT, PLATFORM_REGISTRY } from './platform_name';

const FIND = named('select name from registries where project_id = $1 and deleted_at is null');
const INSERT = named(`insert into registries (id, project_id, name, region, created_at, updated_at)
  values ($1, $2, $3, $4, $5, $5) on conflict do nothing`);
/** No project can have a name with a dot. For an installation where one had the usual name before it was ours. */
const OTHER_NAME = `${PLATFORM_REGISTRY}.platform`;

/** Its name; null where there was never a release image. */
export async function findPlatformRegistry(sql: Sql): Promise<string | null> {
  return (await sql.query<{ name: string }>(FIND, [PLATFORM_PROJECT]))[0]?.name ?? null;
}

/** Its name. It is made with the first release image. */
export async function ensurePlatformRegistry(sql: Sql, region: string): Promise<string> {
  for (const name of [PLATFORM_REGISTRY, OTHER_NAME]) {
    const found = await findPlatformRegistry(sql);
    if (found !== null) return found;
    const id = mintId(Registry.idPrefix);
    await sql.query(INSERT, [id, PLATFORM_PROJECT, name, region, timeOfId(id).toISOString()]);
    await wakeRows(sql, { table: Registry.table, where: 'id = $1', values: [id] });
  }
  const made = await findPlatformRegistry(sql);
  if (made === null) throw new Error('the registry of the platform could not be made');
  return made;
}
