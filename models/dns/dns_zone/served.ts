// What name servers beside that of the jobs read: which zones are answered, and with which content.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';
import type { DnsZone } from '../dns_zone';
import type { RecordFields } from '../dns_record/rules';

const SERIALS = named('select id, serial from dns_zones where is_served and deleted_at is null');

// One statement: records and serial are of the same moment.
const ZONES = named(`select z.id, z.name, z.serial, z.default_ttl, z.soa, z.name_servers, z.signing_keys,
    (select coalesce(json_agg(json_build_object('name', r.name, 'type', r.type, 'value', r.value, 'ttl', r.ttl,
        'priority', r.priority, 'weight', r.weight, 'port', r.port, 'flags', r.flags, 'tag', r.tag)
        order by r.id), '[]')
      from dns_records r where r.dns_zone_id = z.id and not r.is_protected) as records
  from dns_zones z where z.id = any($1) and z.is_served and z.deleted_at is null`);

const CLAIM_NOTICES = named(`update dns_zones set notified_serial = serial
  where id = any($1) and is_served and deleted_at is null and notified_serial is distinct from serial
    and (observed ->> 'serial')::bigint is distinct from serial returning name`);

type ZoneColumns = 'id' | 'name' | 'serial' | 'default_ttl' | 'soa' | 'name_servers' | 'signing_keys';

export type ZoneToServe = Pick<DnsZone, ZoneColumns> & { records: Omit<RecordFields, 'comment'>[] };

/** Serials of all zones that are answered, by id. */
export async function servedSerials(sql: Sql): Promise<Map<string, number>> {
  const rows = await sql.query<{ id: string; serial: number }>(SERIALS, []);
  return new Map(rows.map(({ id, serial }) => [id, serial]));
}

/** Those of these zones that are answered. */
export function zonesToServe(sql: Sql, ids: readonly string[]): Promise<ZoneToServe[]> {
  return sql.query<ZoneToServe>(ZONES, [ids]);
}

/**
 * Names of those zones whose serial the name server of the jobs does not have, as when it is away: secondaries are to
 * be told by the caller, who alone gets them.
 */
export async function claimNotices(sql: Sql, ids: readonly string[]): Promise<string[]> {
  const rows = await sql.query<{ name: string }>(CLAIM_NOTICES, [ids]);
  return rows.map(({ name }) => name);
}
