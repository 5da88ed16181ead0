// What the job of a zone reads and writes beside its own row.
import type { Sql } from '../../core/context';
import { wakeRows } from '../../db/loop_rows';
import type { Session } from '../../db/control_database';
import { named } from '../../db/statement';
import type { RecordFields } from '../dns_record/rules';

const RECORDS = named(`select name, type, value, ttl, priority, weight, port, flags, tag from dns_records
  where dns_zone_id = $1 and not is_protected order by id`);

/** The records of a zone, those of the platform apart. */
export function recordsToServe(sql: Sql, zoneId: string): Promise<Omit<RecordFields, 'comment'>[]> {
  return sql.query(RECORDS, [zoneId]);
}

// Of several claims of a name the delegated one, else the oldest. A claim below a zone that is delegated to another
// project is not served: whoever owns the parent decides (docs/contract/resources.md §12.1).
const SERVED = named(`select id from dns_zones z where lower(name) = $1 and deleted_at is null
    and not exists (select 1 from dns_zones above where above.deleted_at is null and above.status = 'active'
      and above.project_id <> z.project_id and lower(above.name) = any($2))
  order by (status = 'active') desc, id limit 1`);

/** Whether this claim of a name is the one that the name servers answer for. */
export async function isServed(sql: Sql, { id, name }: { id: string; name: string }): Promise<boolean> {
  const labels = name.split('.');
  const above = labels.slice(1).map((_, index) => labels.slice(index + 1).join('.'));
  const [served] = await sql.query<{ id: string }>(SERVED, [name, above]);
  return served?.id === id;
}

/** Which claims of a name, and of names below it, are served may have changed. */
export async function wakeClaims(sql: Sql, zone: { id: string; name: string; project_id: string }): Promise<void> {
  await wakeRows(sql, { table: 'dns_zones', where: CLAIMS, values: [zone.name, zone.project_id, zone.id] });
}

const CLAIMS = `deleted_at is null and id <> $3 and (lower(name) = $1 or right(name, length($1) + 1) = '.' || $1)
  and (name = $1 or project_id <> $2)`;

const OTHER_ACTIVE = named(
  `select 1 from dns_zones where lower(name) = $1 and id <> $2 and status = 'active' and deleted_at is null`,
);

export async function isActiveElsewhere(sql: Sql, { id, name }: { id: string; name: string }): Promise<boolean> {
  return (await sql.query(OTHER_ACTIVE, [name, id])).length > 0;
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
