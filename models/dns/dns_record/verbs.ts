// What requests do with the records of a zone. The zone is locked in all of them.
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import type {
  BatchDnsRecordsInput,
  CreateDnsRecordInput,
  ReplaceDnsRecordsInput,
  UpdateDnsRecordInput,
} from '../../../schema/types';
import type { DnsRecord } from '../dns_record';
import type { DnsZone } from '../dns_zone';
import { allRecords, changeRecords, fieldsOf, type ChangedRecords, type RecordChanges } from './change';
import { identityOf, normalizeRecord, type RecordFields } from './rules';

/** Changes of one batch, in all. */
const BATCH_MAX = 200;
const SINGLE = (): { path: string; index: null } => ({ path: '', index: null });

/** @throws record_invalid, record_conflict, already_exists, quota_exceeded */
export async function createRecord(ctx: Context, zone: DnsZone, input: CreateDnsRecordInput): Promise<DnsRecord> {
  const { created } = await changeRecords(
    ctx,
    zone,
    { create: [writtenFields(input)], update: [], delete: [] },
    SINGLE,
  );
  return (created[0] as DnsRecord).remember(ctx);
}

/** @throws as createRecord, resource_protected */
export async function updateRecord(
  ctx: Context,
  zone: DnsZone,
  record: DnsRecord,
  input: UpdateDnsRecordInput,
): Promise<DnsRecord> {
  const update = [{ id: record.id, fields: changedFields(input) }];
  const { updated } = await changeRecords(ctx, zone, { create: [], update, delete: [] }, SINGLE);
  return (updated[0] as DnsRecord).remember(ctx);
}

/** @throws resource_protected */
export async function deleteRecord(ctx: Context, zone: DnsZone, record: DnsRecord): Promise<void> {
  await changeRecords(ctx, zone, { create: [], update: [], delete: [record.id] }, SINGLE);
  record.remember(ctx);
}

/** Deletes, updates and creates in this order. @throws as createRecord, resource_protected, reference_not_found */
export async function batchRecords(ctx: Context, zone: DnsZone, input: BatchDnsRecordsInput): Promise<ChangedRecords> {
  const changes: RecordChanges = {
    create: (input.create ?? []).map(writtenFields),
    update: (input.update ?? []).map(({ id, ...fields }) => ({ id, fields: changedFields(fields) })),
    delete: [...(input.delete ?? [])],
  };
  if (changes.create.length + changes.update.length + changes.delete.length > BATCH_MAX) {
    const errors = [{ field: 'create', code: 'too_many', detail: `must have at most ${BATCH_MAX} changes in all` }];
    throw problem('validation_failed', undefined, { errors });
  }
  return changeRecords(ctx, zone, changes, (list, index) => ({ path: `${list}.${index}`, index }));
}

/** Replaces all records except managed ones. Unchanged records keep their id. @throws as createRecord */
export async function replaceRecords(
  ctx: Context,
  zone: DnsZone,
  { records }: ReplaceDnsRecordsInput,
): Promise<DnsRecord[]> {
  await setRecords(ctx, zone, records.map(writtenFields));
  const all = await allRecords(ctx, zone);
  for (const record of all) record.zone_name = zone.name;
  return all;
}

/** Deletes, updates and creates records until the zone has exactly these. @throws as createRecord */
async function setRecords(ctx: Context, zone: DnsZone, wanted: RecordFields[]): Promise<ChangedRecords> {
  const all = await allRecords(ctx, zone);
  const current = all.filter(({ is_protected, managed_by }) => !is_protected && !managed_by);
  const ofPlatform = new Set(all.filter((record) => !current.includes(record)).map((record) => textOf(record)));
  const byIdentity = new Map(current.map((record) => [identityOf(record), record]));
  const kept = new Set<string>();
  const changes: RecordChanges = { create: [], update: [], delete: [] };
  const positions: number[] = [];
  const updates: number[] = [];
  wanted.forEach((fields, index) => {
    const { record } = normalizeRecord(fields, zone.name);
    // A client that sends back the whole list names those of the platform too.
    if (ofPlatform.has(textOf(record))) return;
    const known = byIdentity.get(identityOf(record));
    if (!known || kept.has(known.id)) {
      positions.push(index);
      changes.create.push(fields);
      return;
    }
    kept.add(known.id);
    if (textOf(known) === textOf(record)) return;
    updates.push(index);
    changes.update.push({ id: known.id, fields: record });
  });
  changes.delete = current.filter(({ id }) => !kept.has(id)).map(({ id }) => id);
  return changeRecords(ctx, zone, changes, (list, at) => {
    const index = (list === 'create' ? positions[at] : updates[at]) ?? at;
    return { path: `records.${index}`, index };
  });
}

const textOf = (record: RecordFields): string => JSON.stringify(fieldsOf(record));

function writtenFields(input: CreateDnsRecordInput): RecordFields {
  const { type, name, value, ttl, priority, weight, port, flags, tag, comment } = input;
  return {
    type,
    name: name ?? '@',
    value,
    ttl: ttl ?? null,
    priority: priority ?? null,
    weight: weight ?? null,
    port: port ?? null,
    flags: flags ?? null,
    tag: tag ?? null,
    comment: comment ?? null,
  };
}

/** Absent = unchanged, null = cleared. */
function changedFields(input: UpdateDnsRecordInput): Partial<RecordFields> {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined)) as Partial<RecordFields>;
}
