// What the loop and the host read of CDN zones.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';

const HOSTS = named(
  `select hostname, id from domains where cdn_zone_id = $1 and status = 'active' and deleted_at is null order by id`,
);
const HAS_DOMAINS = named('select 1 from domains where cdn_zone_id = $1 limit 1');
const APPLICATION = named(
  'select default_hostname from applications where id = $1 and project_id = $2 and deleted_at is null',
);
const BUCKET = named('select name, region from buckets where id = $1 and project_id = $2 and deleted_at is null');
const PROJECTS = named('select id, project_id from cdn_zones where id = any($1)');
const FORGET_PURGES = named(
  `delete from cdn_purges where cdn_zone_id = $1 and created_at < now() - interval '30 days' and status <> 'pending'`,
);

/** Host names of customers at which a zone answers now. */
export async function activeHosts(sql: Sql, zoneId: string): Promise<{ host: string; domain_id: string }[]> {
  const rows = await sql.query<{ hostname: string; id: string }>(HOSTS, [zoneId]);
  return rows.map(({ hostname: host, id: domain_id }) => ({ host, domain_id }));
}

const ALL_HOSTS = named(`select hostname from cdn_zones where deleted_at is null
  union select hostname from domains where cdn_zone_id is not null and status = 'active' and deleted_at is null`);

/** Host names at which any zone answers now, their own ones among them. */
export async function allHosts(sql: Sql): Promise<string[]> {
  return (await sql.query<{ hostname: string }>(ALL_HOSTS, [])).map(({ hostname }) => hostname);
}

/** Also those in tear-down, which go before their zone. */
export async function hasDomains(sql: Sql, zoneId: string): Promise<boolean> {
  return (await sql.query(HAS_DOMAINS, [zoneId])).length > 0;
}

/** null: the application was deleted. */
export async function applicationHost(sql: Sql, id: string, projectId: string): Promise<string | null> {
  const [row] = await sql.query<{ default_hostname: string }>(APPLICATION, [id, projectId]);
  return row?.default_hostname ?? null;
}

/** null: the bucket was deleted. */
export async function bucketOf(
  sql: Sql,
  id: string,
  projectId: string,
): Promise<{ name: string; region: string } | null> {
  return (await sql.query<{ name: string; region: string }>(BUCKET, [id, projectId]))[0] ?? null;
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
