// What the loop and the host read of CDN zones.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';
import type { CdnCache, CdnOrigin } from '../../../schema/types';

const HAS_DOMAINS = named('select 1 from domains where cdn_zone_id = $1 limit 1');
const PROJECTS = named('select id, project_id from cdn_zones where id = any($1)');
const FORGET_PURGES = named(
  `delete from cdn_purges where cdn_zone_id = $1 and created_at < now() - interval '30 days' and status <> 'pending'`,
);

/** A zone with all that a cache needs to serve it. */
export interface ServedZone {
  id: string;
  hostname: string;
  origin: CdnOrigin;
  enabled: boolean;
  cache: CdnCache;
  compression: boolean;
  force_https: boolean;
  /** Host names of customers at which it answers now. */
  hosts: { host: string; domain_id: string }[];
  /** Host name of the application that is its origin; null where there is none. */
  application_host: string | null;
  /** The bucket that is its origin; null where there is none. */
  bucket: { name: string; region: string } | null;
}

const SERVED = named(`select z.id, z.hostname, z.origin, z.enabled, z.cache, z.compression, z.force_https,
    (select coalesce(jsonb_agg(jsonb_build_object('host', d.hostname, 'domain_id', d.id) order by d.id), '[]')
      from domains d where d.cdn_zone_id = z.id and d.status = 'active' and d.deleted_at is null) as hosts,
    (select a.default_hostname from applications a where a.id = z.origin ->> 'application_id'
      and a.project_id = z.project_id and a.deleted_at is null) as application_host,
    (select jsonb_build_object('name', b.name, 'region', b.region) from buckets b where b.id = z.origin ->> 'bucket_id'
      and b.project_id = z.project_id and b.deleted_at is null) as bucket
  from cdn_zones z where z.deleted_at is null and ($1::text[] is null or z.id = any($1))`);

/** @param ids null: all zones. Those that are gone or in tear-down are left out. */
export function servedZones(sql: Sql, ids: readonly string[] | null): Promise<ServedZone[]> {
  return sql.query<ServedZone>(SERVED, [ids]);
}

/** Also those in tear-down, which go before their zone. */
export async function hasDomains(sql: Sql, zoneId: string): Promise<boolean> {
  return (await sql.query(HAS_DOMAINS, [zoneId])).length > 0;
}

/** Projects of zones, by zone. */
export async function projectsOfZones(sql: Sql, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await sql.query<{ id: string; project_id: string }>(PROJECTS, [ids]);
  return new Map(rows.map(({ id, project_id }) => [id, project_id]));
}

/** Purges are kept for 30 days. */
export async function forgetOldPurges(sql: Sql, zoneId: string): Promise<void> {
  await sql.query(FORGET_PURGES, [zoneId]);
}
