// Which caches have done a purge: that of the process with the jobs, and those of further ingresses. Each of these says
// for how long it may be counted on; one that is silent is waited for no longer, and by then serves nothing itself.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';

/** A cache that has not been renewed for this long is not waited for. */
export const CACHE_LEASE_MS = 10_000;
const FORGOTTEN_AFTER = '1 hour';
/** Longer than a transaction that makes a purge may take to be seen. */
const OVERLAP = '2 minutes';

const IS_RECORDED = named('select 1 from cdn_purge_nodes where cdn_purge_id = $1 and node = $2');
const RECORD = named(
  `insert into cdn_purge_nodes (cdn_purge_id, node) select id, $2 from cdn_purges where id = any($1) for key share
    on conflict (cdn_purge_id, node) do nothing`,
);
const UNFINISHED = named(`select 1 from cdn_caches c where expires_at > now() and not exists
  (select 1 from cdn_purge_nodes n where n.cdn_purge_id = $1 and n.node = c.id) limit 1`);

/** Whether a cache has done the purge. */
export async function isPurgeRecorded(sql: Sql, purgeId: string, cache: string): Promise<boolean> {
  return (await sql.query(IS_RECORDED, [purgeId, cache])).length > 0;
}

/** A purge that has gone meanwhile, with its zone, is passed over. */
export async function recordPurges(sql: Sql, purgeIds: readonly string[], cache: string): Promise<void> {
  await sql.query(RECORD, [purgeIds, cache]);
}

/** Whether the cache of a further ingress that lives has yet to do the purge. */
export async function hasUnfinishedCaches(sql: Sql, purgeId: string): Promise<boolean> {
  return (await sql.query(UNFINISHED, [purgeId])).length > 0;
}

const RENEW = named(`with forgotten as
    (delete from cdn_caches where expires_at < now() - interval '${FORGOTTEN_AFTER}' and id <> $1)
  insert into cdn_caches (id, expires_at) values ($1, now() + interval '${CACHE_LEASE_MS} ms')
    on conflict (id) do update set expires_at = excluded.expires_at
    returning now()::text as now`);
const REMOVE = named('delete from cdn_caches where id = $1');

/** From now on purges wait for this cache, for `CACHE_LEASE_MS`. @returns the time of the database */
export async function renewCache(sql: Sql, id: string): Promise<string> {
  const [row] = await sql.query<{ now: string }>(RENEW, [id]);
  return row?.now as string;
}

export async function removeCache(sql: Sql, id: string): Promise<void> {
  await sql.query(REMOVE, [id]);
}

export interface OpenPurge {
  id: string;
  cdn_zone_id: string;
  type: 'all' | 'urls' | 'prefixes' | 'tags';
  values: string[] | null;
}

const OPEN = named(`select p.id, cdn_zone_id, type, "values" from cdn_purges p
  where recorded_at > $2::timestamptz - interval '${OVERLAP}'
    and not exists (select 1 from cdn_purge_nodes n where n.cdn_purge_id = p.id and n.node = $1)
  order by recorded_at`);

/** Purges that this cache has not done. @param since a time of the database at which it had done all of them */
export function openPurges(sql: Sql, cache: string, since: string): Promise<OpenPurge[]> {
  return sql.query<OpenPurge>(OPEN, [cache, since]);
}
