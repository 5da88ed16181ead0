// Changes of the records of a zone: whatever the request was, deletions, updates and creations in one step under the
// lock of the zone, all or nothing.
import { isDeepStrictEqual } from 'node:util';
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import { timeOfId } from '../../../core/ids';
import { limits } from '../../../core/limits';
import { named } from '../../../db/statement';
import type { Values } from '../../../db/table';
import { newRowId, noteRowChange } from '../../base/row_changes';
import { DnsRecord } from '../dns_record';
import type { DnsZone } from '../dns_zone';
import { conflictIn, identityOf, normalizeRecord, type RecordFields, type RecordMistake } from './rules';

export interface RecordChanges {
  create: RecordFields[];
  update: { id: string; fields: Partial<RecordFields> }[];
  delete: string[];
}

export interface ChangedRecords {
  created: DnsRecord[];
  updated: DnsRecord[];
  deleted: string[];
}

/** Where a record stands in the body, for the messages: `create.0`, or nothing where the body is the record. */
export interface Origin {
  path: string;
  index: number | null;
}

const COLUMNS = `id, project_id, dns_zone_id, name, type, value, ttl, priority, weight, port, flags, tag, comment,
  is_protected, managed_by, version, created_at, updated_at`;
const AFFECTED = named(
  `select ${COLUMNS} from dns_records where dns_zone_id = $1 and (id = any($2) or name = any($3)) order by id`,
  { makes: DnsRecord },
);
const ALL = named(`select ${COLUMNS} from dns_records where dns_zone_id = $1 order by id`, { makes: DnsRecord });
const DELETE = named('delete from dns_records where dns_zone_id = $1 and id = any($2)');
const FIELDS = `id text, name text, type text, value text, ttl int, priority int, weight int, port int, flags int,
  tag text, comment text, created_at timestamptz`;
const INSERT = named(
  `insert into dns_records (id, project_id, dns_zone_id, name, type, value, ttl, priority, weight, port, flags, tag,
     comment, created_at, updated_at)
   select id, $2, $3, name, type, value, ttl, priority, weight, port, flags, tag, comment, created_at, now()
   from jsonb_to_recordset($1::jsonb) as r (${FIELDS}) returning ${COLUMNS}`,
  { makes: DnsRecord },
);
const UPDATE = named(
  `update dns_records d set name = r.name, value = r.value, ttl = r.ttl, priority = r.priority, weight = r.weight,
     port = r.port, flags = r.flags, tag = r.tag, comment = r.comment, version = d.version + 1,
     updated_at = greatest(now(), d.updated_at)
   from jsonb_to_recordset($1::jsonb) as r (${FIELDS}) where d.id = r.id and d.dns_zone_id = $2
   returning ${COLUMNS.replace(/\w+/g, 'd.$&')}`,
  { makes: DnsRecord },
);

/** Every record of the zone, in the order of creation. */
export function allRecords(ctx: Context, zone: DnsZone): Promise<DnsRecord[]> {
  return ctx.sql.query<DnsRecord>(ALL, [zone.id]);
}

/**
 * The zone must be locked. Raises its serial when anything has changed.
 * @param origin position of a record in the request body, for error details
 * @throws record_invalid, record_conflict, already_exists, resource_protected, reference_not_found, quota_exceeded
 */
export async function changeRecords(
  ctx: Context,
  zone: DnsZone,
  changes: RecordChanges,
  origin: (list: 'create' | 'update' | 'delete', index: number) => Origin,
): Promise<ChangedRecords> {
  const ids = [...changes.delete, ...changes.update.map(({ id }) => id)];
  const addressed = ids.length ? await ctx.sql.query<DnsRecord>(AFFECTED, [zone.id, ids, []]) : [];
  const known = new Map(addressed.map((record) => [record.id, record]));
  changes.delete.forEach((id, index) => requireOwn(known.get(id), origin('delete', index)));
  changes.update.forEach(({ id }, index) => requireOwn(known.get(id), origin('update', index)));
  const mistakes: (RecordMistake & { index?: number })[] = [];
  const normalize = (fields: RecordFields, at: Origin): RecordFields => {
    const { record, mistakes: found } = normalizeRecord(fields, zone.name);
    mistakes.push(...found.map((mistake) => locate(mistake, at)));
    return record;
  };
  const updated = changes.update.map(({ id, fields }, index) => {
    const before = known.get(id) as DnsRecord;
    return { id, ...normalize({ ...fieldsOf(before), ...fields }, origin('update', index)) };
  });
  const created = changes.create.map((fields, index) => ({
    id: newRowId(ctx, DnsRecord.idPrefix),
    ...normalize(fields, origin('create', index)),
  }));
  if (mistakes.length) throw problem('record_invalid', undefined, { record_errors: mistakes });
  await requireCompatible(ctx, zone, changes, addressed, [...updated, ...created]);
  requireRoom(zone, created.length - changes.delete.length);
  const isSame = updated.every((record) =>
    isDeepStrictEqual(fieldsOf(record), fieldsOf(known.get(record.id) as DnsRecord)),
  );
  noteChanges(ctx, known, { created, updated, deleted: changes.delete });
  return write(ctx, zone, { created, updated, deleted: changes.delete }, isSame);
}

interface WrittenRecords {
  created: Written[];
  updated: Written[];
  deleted: string[];
}

function noteChanges(ctx: Context, known: ReadonlyMap<string, DnsRecord>, written: WrittenRecords): void {
  if (!ctx.activity.changes) return;
  const { kind } = DnsRecord;
  const before = (id: string): Values => ({ ...fieldsOf(known.get(id) as DnsRecord) });
  for (const id of written.deleted) noteRowChange(ctx, kind, { id }, { before: before(id), after: null });
  for (const { id, ...fields } of written.updated)
    noteRowChange(ctx, kind, { id }, { before: before(id), after: { ...fields } });
  for (const { id, ...fields } of written.created)
    noteRowChange(ctx, kind, { id }, { before: null, after: { ...fields } });
}

function locate(mistake: RecordMistake, { path, index }: Origin): RecordMistake & { index?: number } {
  const field = path ? `${path}.${mistake.field}` : mistake.field;
  return { ...mistake, field, ...(index !== null && { index }) };
}

function requireOwn(record: DnsRecord | undefined, { path }: Origin): void {
  if (!record) throw problem('reference_not_found', 'The zone has no record with this id.', { field: path });
  record.requireChangeable();
}

type Written = RecordFields & { id: string };

/** Against what stands at the same names. @throws already_exists, record_conflict */
async function requireCompatible(
  ctx: Context,
  zone: DnsZone,
  changes: RecordChanges,
  before: DnsRecord[],
  written: Written[],
): Promise<void> {
  const names = [...new Set([...before, ...written].map(({ name }) => name))];
  const gone = new Set([...changes.delete, ...changes.update.map(({ id }) => id)]);
  const beside = names.length ? await ctx.sql.query<DnsRecord>(AFFECTED, [zone.id, [], names]) : [];
  const result: Written[] = [...beside.filter(({ id }) => !gone.has(id)), ...written];
  const identities = new Map<string, string>();
  for (const record of result) {
    const resource_id = identities.get(identityOf(record));
    if (resource_id !== undefined)
      throw problem('already_exists', `The zone has this ${record.type} record of ${record.name} already.`, {
        resource_id,
      });
    identities.set(identityOf(record), record.id);
  }
  const conflict = conflictIn(result);
  if (conflict !== null) throw problem('record_conflict', conflict);
}

function requireRoom(zone: DnsZone, more: number): void {
  const limit = limits.recordsPerDnsZone;
  if (more <= 0 || zone.record_count + more <= limit) return;
  const used = zone.record_count;
  throw problem('quota_exceeded', `A zone may have ${limit} records.`, { resource: 'dns_records', used, limit });
}

async function write(
  ctx: Context,
  zone: DnsZone,
  { created, updated, deleted }: WrittenRecords,
  isSame: boolean,
): Promise<ChangedRecords> {
  if (!created.length && !updated.length && !deleted.length) return { created: [], updated: [], deleted: [] };
  if (deleted.length) await ctx.sql.query(DELETE, [zone.id, deleted]);
  const changed = updated.length ? await ctx.sql.query<DnsRecord>(UPDATE, [JSON.stringify(updated), zone.id]) : [];
  const made = created.length
    ? await ctx.sql.query<DnsRecord>(INSERT, [JSON.stringify(created.map(withTime)), zone.project_id, zone.id])
    : [];
  for (const record of [...changed, ...made]) record.zone_name = zone.name;
  // Secondaries fetch a zone of a new serial.
  if (created.length || deleted.length || !isSame) await zone.recordsChanged(ctx, created.length - deleted.length);
  return { created: inOrder(made, created), updated: inOrder(changed, updated), deleted };
}

/** One that a revert makes again is as old as its id. */
function withTime(record: Written): Written & { created_at: string } {
  return { ...record, created_at: timeOfId(record.id).toISOString() };
}

function inOrder(rows: DnsRecord[], order: { id: string }[]): DnsRecord[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  return order.map(({ id }) => byId.get(id) as DnsRecord);
}

/** What of a record a client may write. */
export function fieldsOf(record: RecordFields): RecordFields {
  const { type, name, value, ttl, priority, weight, port, flags, tag, comment } = record;
  return { type, name, value, ttl, priority, weight, port, flags, tag, comment };
}
