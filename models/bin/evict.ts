// Removal of deleted resources before their time, where the operator has said that a full disk goes first.
import type { Sql } from '../../core/context';
import type { Config } from '../../core/config';
import type { Logger } from '../../core/log/log';
import type { Session } from '../../db/control_database';
import { named } from '../../db/statement';
import type { PurgeContext } from '../base/bin';
import { allKinds, kindNamed } from '../base/kinds';
import { purgeEntry, type Entry } from './purge';

export interface Evicted {
  type: string;
  id: string;
}

// Protection holds for what is in the bin of a project too.
const OLDEST = `select d.id from deleted_resources d join projects p on p.id = d.project_id
  where d.resource_type = any($1) and not p.deletion_protection and d.id <> all($2) order by d.id limit 1`;
const REMOVE_OLDEST = named(`delete from deleted_resources where id = (${OLDEST} for update of d skip locked)
  returning id, project_id, resource_type, resource_id, name, along`);
const FIND_OLDEST = named(OLDEST);

/** Removes the one that was deleted first of those whose data are on the disk. @returns null where there is none */
export async function evictOldest(
  { sql, config, log }: Omit<PurgeContext, 'sql'> & { sql: Session; log: Logger },
  failed: readonly string[] = [],
): Promise<Evicted | null> {
  const types = typesOnDisk(config);
  try {
    return await sql.transaction(async (session) => {
      const [entry] = await session.query<Entry>(REMOVE_OLDEST, [types, failed]);
      if (!entry) return null;
      await purgeEntry({ sql: session, config }, entry, 'deleted_resource.evicted');
      return { type: entry.resource_type, id: entry.resource_id };
    });
  } catch (error) {
    // What cannot be purged keeps nothing else from it.
    const [entry] = await sql.query<{ id: string }>(FIND_OLDEST, [types, failed]);
    if (!entry) throw error;
    log.error({ err: error, id: entry.id }, 'a deleted resource could not be purged');
    return evictOldest({ sql, config, log }, [...failed, entry.id]);
  }
}

function typesOnDisk(config: Config): string[] {
  return allKinds().flatMap(({ kind, bin }) => (bin?.isOnDisk?.(config) ? [kind] : []));
}

/** Whether the loop is about to remove its files: until then the disk does not tell what it has made room for. */
export async function isBeingTornDown(sql: Sql, { type, id }: Evicted): Promise<boolean> {
  const text = `select 1 from ${kindNamed(type).table} where id = $1 and deleted_at is not null
    and (next_at <= now() or lease_until > now())`;
  return (await sql.query(named(text), [id])).length > 0;
}

const HELD = named(`select count(*)::int as count,
    coalesce(sum(coalesce(v.used_bytes, (d.observed ->> 'storage_used_bytes')::float8, 0)), 0)::float8 as bytes
  from deleted_resources e left join volumes v on v.id = e.resource_id left join databases d on d.id = e.resource_id`);

/** How many resources are in all bins, and the bytes of volumes and databases among them, as last measured. */
export async function heldInBins(sql: Sql): Promise<{ count: number; bytes: number }> {
  const [held] = await sql.query<{ count: number; bytes: number }>(HELD, []);
  return held ?? { count: 0, bytes: 0 };
}
