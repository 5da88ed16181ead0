// Serials of zones that are no longer served. A zone of the same name that is served later, of whoever it is, starts
// above: secondaries that still have the earlier zone take one with a higher serial only (RFC 1982). All serials are
// below 2^31, so higher is higher there too.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';

const SERIAL_MAX = 2 ** 31 - 1;
/** After this time no secondary has the zone any more: the longest `expire` of a SOA, in days. */
const KEPT_DAYS = 28;

const RECORD = named(`insert into dns_last_serials (name, serial, ended_at) values ($1, $2, now())
  on conflict (name) do update set serial = greatest(dns_last_serials.serial, excluded.serial), ended_at = now()`);
const PRUNE = named(`delete from dns_last_serials where ended_at < now() - interval '${KEPT_DAYS} days'`);

/** Before the zone is removed from the name server. */
export async function recordLastSerial(sql: Sql, { name }: { name: string }, serial: number): Promise<void> {
  await sql.query(PRUNE, []);
  await sql.query(RECORD, [name, serial]);
}

const RAISE = named(`update dns_zones z set serial = greatest(z.serial, least(l.serial, ${SERIAL_MAX - 1}) + 1)
  from dns_last_serials l where z.id = $1 and l.name = z.name returning z.serial`);

/** Before the zone is served. @returns its serial, above that of the zone that was served before it */
export async function raiseAboveLast(sql: Sql, zone: { id: string; serial: number }): Promise<number> {
  const [raised] = await sql.query<{ serial: number }>(RAISE, [zone.id]);
  return raised?.serial ?? zone.serial;
}
