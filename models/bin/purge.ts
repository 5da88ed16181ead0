// Removal for good: of one entry by a person, and of all whose time is over by a periodic task.
import type { Sql } from '../../core/context';
import { problem } from '../../core/errors';
import type { Logger } from '../../core/log/log';
import type { Session } from '../../db/control_database';
import { named } from '../../db/statement';
import type { PurgeContext } from '../base/bin';
import { kindNamed } from '../base/kinds';
import { purgeResource } from '../base/purge';
import { PLATFORM, recordProjectEvent } from '../projects/activity';

export interface Entry {
  id: string;
  project_id: string;
  resource_type: string;
  resource_id: string;
  name: string | null;
  along: string[];
}

const REMOVE = named('delete from deleted_resources where id = $1 returning id');
const REMOVE_DUE = named(`delete from deleted_resources where id = (
    select id from deleted_resources where kept_until <= now() and id <> all($1)
      order by kept_until limit 1 for update skip locked)
  returning id, project_id, resource_type, resource_id, name, along`);
const FIRST_DUE = named('select id from deleted_resources where kept_until <= now() and id <> all($1) limit 1');

/** Whoever removes the entry decides what becomes of its resource. @throws not_found where somebody else has */
export async function removeEntry(sql: Sql, id: string): Promise<void> {
  const [removed] = await sql.query(REMOVE, [id]);
  if (!removed) throw problem('not_found');
}

/** Purges up to `batch` resources whose time is over, each in a transaction of its own. @returns how many */
export async function emptyBin(
  { sql, config, log }: Omit<PurgeContext, 'sql'> & { sql: Session; log: Logger },
  batch: number,
): Promise<number> {
  const failed: string[] = [];
  let purged = 0;
  const purgeNext = (session: Session): Promise<string | null> => purgeDue({ sql: session, config }, failed);
  while (purged + failed.length < batch) {
    try {
      if ((await sql.transaction(purgeNext)) === null) break;
      purged += 1;
    } catch (error) {
      // What cannot be purged keeps nothing else from it.
      const [entry] = await sql.query<{ id: string }>(FIRST_DUE, [failed]);
      if (!entry) throw error;
      log.error({ err: error, id: entry.id }, 'a deleted resource could not be purged');
      failed.push(entry.id);
    }
  }
  return purged;
}

async function purgeDue(ctx: PurgeContext, failed: readonly string[]): Promise<string | null> {
  const [entry] = await ctx.sql.query<Entry>(REMOVE_DUE, [failed]);
  if (!entry) return null;
  await purgeEntry(ctx, entry, 'deleted_resource.expired');
  return entry.id;
}

/** What the platform does with an entry that it has just removed. @param action as the activity names it */
export async function purgeEntry(ctx: PurgeContext, entry: Entry, action: string): Promise<void> {
  const { project_id, resource_type: type, resource_id, name, along } = entry;
  await purgeResource(ctx, kindNamed(type), { id: resource_id, project_id }, along);
  const resource = { type, id: resource_id, name };
  await recordProjectEvent(ctx.sql, { project_id, action, actor: PLATFORM, key_id: null, resource });
}
