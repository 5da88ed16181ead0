// What the job of a zone reads and writes beside its own row.
import type { Sql } from '../../../core/context';
import { makeRowsDue, wakeRows } from '../../../db/loop_rows';
import type { Session } from '../../../db/control_database';
import { named } from '../../../db/statement';
import type { RecordFields } from '../dns_record/rules';

const RECORDS = named(`select name, type, value, ttl, priority, weight, port, flags, tag from dns_records
  where dns_zone_id = $1 and not is_protected order by id`);

/** The records of a zone without the platform's SOA and NS records. */
export function recordsToServe(sql: Sql, zoneId: string): Promise<Omit<RecordFields, 'comment'>[]> {
  return sql.query(RECORDS, [zoneId]);
}

// Only while the keys are those that were looked for: DNSSEC may have been switched off meanwhile.
const DNSSEC = named(`update dns_zones set dnssec_status = $3, dnssec_checked_at = $4,
    observed_generation = observed_generation + 1 where id = $1 and signing_keys = $2`);
const PRUNE = named(
  `update dns_zones set signing_keys = $3, serial = serial + 1 where id = $1 and signing_keys = $2 returning id`,
);

export async function recordDnssec(
  sql: Session,
  zone: { id: string; signing_keys: string | null },
  { status, checked_at }: { status: string; checked_at: string },
): Promise<void> {
  await sql.query(DNSSEC, [zone.id, zone.signing_keys, status, checked_at]);
}

/** Keeps these keys only, and has the zone served with them. */
export async function pruneKeys(
  sql: Session,
  zone: { id: string; signing_keys: string | null },
  sealed: string,
): Promise<void> {
  const pruned = await sql.query(PRUNE, [zone.id, zone.signing_keys, sealed]);
  if (pruned.length) await wakeRows(sql, { table: 'dns_zones', where: 'id = $1', values: [zone.id] });
}

const RAISE = named(`update dns_zones set serial = case when serial >= 2147483647 then 1 else serial + 1 end
  where id = $1 and serial = $2 returning serial`);

/** @returns the new serial; null where a request has raised it meanwhile */
export async function raiseSerial(sql: Sql, zone: { id: string; serial: number }): Promise<number | null> {
  const [raised] = await sql.query<{ serial: number }>(RAISE, [zone.id, zone.serial]);
  return raised?.serial ?? null;
}

const PROJECTS = named('select id, project_id from dns_zones where id = any($1)');

/** The project of each of the zones that there are. */
export async function zoneProjects(sql: Sql, ids: readonly string[]): Promise<Map<string, string>> {
  if (!ids.length) return new Map();
  const rows = await sql.query<{ id: string; project_id: string }>(PROJECTS, [ids]);
  return new Map(rows.map(({ id, project_id }) => [id, project_id]));
}

/** All zones but these are served at once; and those of which no job has said whether they are answered. */
export async function makeZonesDue(sql: Sql, butIds: readonly string[]): Promise<void> {
  await makeRowsDue(sql, {
    table: 'dns_zones',
    where:
      'deleted_at is null and (is_served is null or ' +
      'not exists (select 1 from unnest($1::text[]) as kept (id) where kept.id = dns_zones.id))',
    values: [butIds],
  });
}
