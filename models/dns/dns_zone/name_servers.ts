// The NS records of the platform at the apex of a zone.
import type { Context } from '../../../core/context';
import { mintId } from '../../../core/ids';
import { named } from '../../../db/statement';
import { DnsRecord } from '../dns_record';

const INSERT =
  named(`insert into dns_records (id, project_id, dns_zone_id, name, type, value, is_protected, created_at, updated_at)
  select id, $3, $4, '@', 'NS', value, true, now(), now() from unnest($1::text[], $2::text[]) as r (id, value)`);
const COUNT = named('update dns_zones set record_count = record_count + $2 where id = $1');

interface Zone {
  id: string;
  project_id: string;
  name_servers: string[];
  record_count: number;
}

export async function insertNameServers(ctx: Context, zone: Zone): Promise<void> {
  const { name_servers } = zone;
  const ids = name_servers.map(() => mintId(DnsRecord.idPrefix));
  await ctx.sql.query(INSERT, [ids, name_servers, zone.project_id, zone.id]);
  await ctx.sql.query(COUNT, [zone.id, name_servers.length]);
  zone.record_count = name_servers.length;
}
