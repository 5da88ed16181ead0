// Records that the platform makes for a resource of the same project: a custom domain, an email domain, a CDN domain.
// They stand in the zones that the project holds, bear their owner in `managed_by`, and go with it. A record of the
// user is never changed: where one is in the way, it is named instead (docs/decisions/0032).
import type { Sql } from '../../../core/context';
import { mintId } from '../../../core/ids';
import { limits } from '../../../core/limits';
import { changeRows, NEW_VERSION } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import type { DnsType } from '../../../schema/types';
import { DnsRecord } from '../dns_record';
import { conflictingName, fqdnOf, identityOf, normalizeRecord, type RecordFields } from './rules';

/** Whose records they are: the kind and id of a resource, and its project. */
interface RecordOwner {
  type: string;
  id: string;
  project_id: string;
}

export interface ManagedRecord {
  type: DnsType;
  /** The full name. */
  name: string;
  value: string;
  ttl?: number | null;
  priority?: number | null;
  /** Whether a record of the user at the same name would defeat this one, beside what the DNS itself forbids. */
  isDefeatedBy?: (other: Pick<RecordFields, 'type' | 'value'>) => boolean;
}

export interface ManagedRecords {
  /** Every record is present, in zones that are delegated to the platform: no record has to be created or queried. */
  isServed: boolean;
  /** Those that are there, by `managedKey`. */
  present: string[];
  /** Why others are not there: sentences for the user. */
  conflicts: string[];
}

/** A key that is unique among the records of one owner. */
export function managedKey({ type, name, value }: Pick<ManagedRecord, 'type' | 'name' | 'value'>): string {
  return `${type} ${name} ${value}`;
}

interface Zone {
  id: string;
  name: string;
  status: string;
  record_count: number;
}

type Standing = RecordFields & { id: string; dns_zone_id: string; managed_by: { type: string; id: string } | null };

interface Placed {
  wanted: ManagedRecord;
  zone: Zone;
  record: RecordFields;
}

interface Plan extends ManagedRecords {
  create: Placed[];
  /** Of the owner, and no longer wanted. */
  stale: Standing[];
}

/**
 * Reconciles the managed records of an owner in the zones of its project: creates missing ones, removes obsolete ones.
 * Run it in a transaction; it is idempotent.
 * @returns null where the project has no zone for any of the names
 */
export async function ensureManagedRecords(
  sql: Sql,
  owner: RecordOwner,
  wanted: readonly ManagedRecord[],
): Promise<ManagedRecords | null> {
  const seen = await planFor(sql, owner, wanted, '');
  if (!seen) return null;
  // Most calls change nothing, and lock nothing.
  if (!seen.create.length && !seen.stale.length) return resultOf(seen);
  const plan = await planFor(sql, owner, wanted, 'for no key update');
  if (!plan) return null;
  await write(sql, owner, plan);
  return resultOf(plan);
}

/** Removes every record of an owner. */
export async function removeManagedRecords(sql: Sql, owner: Pick<RecordOwner, 'type' | 'id'>): Promise<void> {
  const stale = await sql.query<Standing>(OWNED, [owner.type, owner.id]);
  if (!stale.length) return;
  await sql.query(LOCK, [[...new Set(stale.map(({ dns_zone_id }) => dns_zone_id))]]);
  await remove(sql, stale);
}

const ZONES = 'select id, name, status, record_count from dns_zones';
const LOCK = named('select id from dns_zones where id = any($1) order by id for no key update');
const COLUMNS = `id, dns_zone_id, name, type, value, ttl, priority, weight, port, flags, tag, comment, managed_by`;
const OF_OWNER = `select ${COLUMNS} from dns_records r where managed_by->>'type' = $1 and managed_by->>'id' = $2`;
const OWNED = named(`${OF_OWNER} order by id`);
// Those of a zone in the bin stay: they are looked at when it is restored.
const OWNED_IN_USE = named(
  `${OF_OWNER} and exists (select from dns_zones z where z.id = r.dns_zone_id and z.deleted_at is null) order by id`,
);
// At the names themselves, and delegations above them.
const BESIDE = named(
  `select ${COLUMNS} from dns_records where dns_zone_id = any($1) and (name = any($2)
    or (type = 'NS' and name = any($3)))`,
);

async function planFor(
  sql: Sql,
  owner: RecordOwner,
  wanted: readonly ManagedRecord[],
  lock: '' | 'for no key update',
): Promise<Plan | null> {
  const zones = await zonesAbove(sql, owner.project_id, wanted, lock);
  const own = await sql.query<Standing>(OWNED_IN_USE, [owner.type, owner.id]);
  if (!zones.length && !own.length) return null;
  const placed = wanted.flatMap((record) => place(record, zones));
  const names = [...new Set(placed.map(({ record }) => record.name))];
  const above = [...new Set(names.flatMap(namesAbove))];
  const beside = await sql.query<Standing>(BESIDE, [zones.map(({ id }) => id), names, above]);
  const plan: Plan = { isServed: placed.length === wanted.length, present: [], conflicts: [], create: [], stale: [] };
  plan.stale = own.filter((record) => !placed.some((one) => isSame(one, record)));
  const stale = new Set(plan.stale.map(({ id }) => id));
  const standing = beside.filter(({ id }) => !stale.has(id));
  for (const one of placed) decide(plan, one, standing);
  return zones.length ? plan : { ...plan, isServed: false };
}

async function zonesAbove(
  sql: Sql,
  projectId: string,
  wanted: readonly ManagedRecord[],
  lock: string,
): Promise<Zone[]> {
  const above = new Set(wanted.flatMap(({ name }) => [name, ...namesAbove(name)]));
  const text = `${ZONES} where project_id = $1 and name = any($2) and deleted_at is null order by id ${lock}`;
  return sql.query<Zone>(named(text), [projectId, [...above]]);
}

/** a.b.c: b.c and c. */
function namesAbove(name: string): string[] {
  const labels = name.split('.');
  return labels.slice(1).map((_, index) => labels.slice(index + 1).join('.'));
}

/** Places a record in the zone with the longest matching name: resolvers query that zone. */
function place(wanted: ManagedRecord, zones: Zone[]): Placed[] {
  const [zone] = zones
    .filter(({ name }) => wanted.name === name || wanted.name.endsWith(`.${name}`))
    .sort((a, b) => b.name.length - a.name.length);
  if (!zone) return [];
  const name = wanted.name === zone.name ? '@' : wanted.name.slice(0, -zone.name.length - 1);
  const { value, ttl = null, priority = null } = wanted;
  // The apex of a zone cannot have a CNAME (RFC 1034 §3.6.2); an ALIAS leads to the same addresses.
  const type = wanted.type === 'CNAME' && name === '@' ? 'ALIAS' : wanted.type;
  const none = { weight: null, port: null, flags: null, tag: null, comment: null };
  const { record } = normalizeRecord({ type, name, value, ttl, priority, ...none }, zone.name);
  return [{ wanted, zone, record }];
}

function isSame({ zone, record }: Placed, other: Standing): boolean {
  return other.dns_zone_id === zone.id && identityOf(other) === identityOf(record);
}

function decide(plan: Plan, one: Placed, standing: Standing[]): void {
  const conflict = conflictOf(plan, one, standing);
  const { zone, wanted } = one;
  if (conflict) plan.conflicts.push(conflict);
  else {
    plan.present.push(managedKey(wanted));
    if (!standing.some((other) => isSame(one, other))) plan.create.push(one);
  }
  if (conflict || zone.status !== 'active') plan.isServed = false;
}

/** The existing record that conflicts with a managed record, as a message; null without a conflict. */
function conflictOf(plan: Plan, { zone, record, wanted }: Placed, standing: Standing[]): string | null {
  const inZone = standing.filter(({ dns_zone_id }) => dns_zone_id === zone.id);
  const above = namesAbove(record.name);
  const cut = inZone.find(({ type, name }) => type === 'NS' && (above.includes(name) || isCutAt(record, name)));
  if (cut) {
    const delegated = fqdnOf(cut.name, zone.name);
    return `The zone ${zone.name} cannot answer for ${wanted.name}: ${delegated} is delegated to other name servers.`;
  }
  const others = inZone.filter(({ name }) => name === record.name);
  if (others.some((other) => identityOf(other) === identityOf(record))) return null;
  const other = others.find(
    (found) => conflictingName([found, record]) !== null || wanted.isDefeatedBy?.(found) === true,
  );
  if (other) {
    const there = `${other.type} ${shorten(other.value)}`;
    const remedy = `Remove that record, then the platform creates the ${record.type} record.`;
    return `The zone ${zone.name} has another record of ${wanted.name}: ${there}. ${remedy}`;
  }
  return roomFor(plan, zone)
    ? null
    : `The zone ${zone.name} has reached its limit of records, so the ${record.type} record of ${wanted.name} ` +
        `cannot be created.`;
}

function roomFor({ create }: Plan, zone: Zone): boolean {
  const more = create.filter((made) => made.zone.id === zone.id).length;
  return zone.record_count + more < limits.recordsPerDnsZone;
}

/** A delegated name has no other records beside its NS records. */
function isCutAt({ name }: RecordFields, other: string): boolean {
  return name !== '@' && name === other;
}

const SHOWN_CHARACTERS = 100;

function shorten(value: string): string {
  return value.length > SHOWN_CHARACTERS ? `${value.slice(0, SHOWN_CHARACTERS)}…` : value;
}

function resultOf({ isServed, present, conflicts }: Plan): ManagedRecords {
  return { isServed, present, conflicts };
}

const INSERT = named(
  `insert into dns_records (id, project_id, dns_zone_id, name, type, value, ttl, priority, managed_by, created_at,
     updated_at)
   select id, $2, dns_zone_id, name, type, value, ttl, priority, $3, now(), now() from jsonb_to_recordset($1::jsonb)
     as r (id text, dns_zone_id text, name text, type text, value text, ttl int, priority int)`,
);
const DELETE = named('delete from dns_records where id = any($1)');

async function write(sql: Sql, { type, id, project_id }: RecordOwner, { create, stale }: Plan): Promise<void> {
  if (stale.length) {
    const others = [...new Set(stale.map(({ dns_zone_id }) => dns_zone_id))];
    await sql.query(LOCK, [others]);
    await remove(sql, stale);
  }
  if (!create.length) return;
  const rows = create.map(({ zone, record }) => ({
    id: mintId(DnsRecord.idPrefix),
    dns_zone_id: zone.id,
    name: record.name,
    type: record.type,
    value: record.value,
    ttl: record.ttl,
    priority: record.priority,
  }));
  await sql.query(INSERT, [JSON.stringify(rows), project_id, JSON.stringify({ type, id })]);
  await changed(
    sql,
    create.map(({ zone }) => zone.id),
    1,
  );
}

async function remove(sql: Sql, stale: Standing[]): Promise<void> {
  await sql.query(DELETE, [stale.map(({ id }) => id)]);
  await changed(
    sql,
    stale.map(({ dns_zone_id }) => dns_zone_id),
    -1,
  );
}

/** The zones are locked. @param each what each mention of a zone adds to its number of records */
async function changed(sql: Sql, zoneIds: string[], each: 1 | -1): Promise<void> {
  for (const id of new Set(zoneIds)) {
    const more = each * zoneIds.filter((other) => other === id).length;
    const set = `serial = case when serial >= 2147483647 then 1 else serial + 1 end,
      record_count = record_count + $2::int, ${NEW_VERSION}`;
    await changeRows(sql, { table: 'dns_zones', where: 'id = $1', values: [id, more], set });
  }
}
