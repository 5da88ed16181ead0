// Import and export of zone files.
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import { UnreadableZoneFile } from '../../../core/protocols/dns_records/tokens';
import { named } from '../../../db/statement';
import type { DnsImport, DnsZoneFile, ImportDnsZoneInput } from '../../../schema/types';
import type { DnsRecord } from '../dns_record';
import { allRecords, changeRecords, fieldsOf, type RecordChanges } from '../dns_record/change';
import { identityOf, normalizeRecord, type RecordFields } from '../dns_record/rules';
import type { DnsZone } from '../dns_zone';
import { parseZoneFile, writeZoneFile, type ParsedZone, type ZoneFileError } from './zone_file';

export async function exportZone(ctx: Context, zone: DnsZone): Promise<DnsZoneFile> {
  const records = (await allRecords(ctx, zone)).filter(({ is_protected }) => !is_protected);
  return { zone_file: writeZoneFile(zone.name, zone.default_ttl, records) };
}

/** The zone must be locked. @throws zone_file_invalid with `line`, record_conflict, quota_exceeded */
export async function importZone(ctx: Context, zone: DnsZone, input: ImportDnsZoneInput): Promise<ImportResult> {
  const parsed = parse(input.zone_file, zone);
  const errors: ZoneFileError[] = [...parsed.errors];
  const notes: ZoneFileError[] = [...parsed.notes];
  const wanted: WantedRecord[] = [];
  let skipped = 0;
  for (const { line, record, type, fqdn } of parsed.records) {
    if (!record || (type === 'NS' && fqdn === zone.name)) skipped += 1;
    else {
      const { fields, message, note } = fitRecord(record, fqdn, zone);
      if (message) errors.push({ line, message });
      else wanted.push({ line, fields });
      if (note && !message) notes.push({ line, message: note });
    }
  }
  return merge(ctx, zone, wanted, {
    errors,
    notes,
    skipped,
    isReplacing: input.mode === 'replace',
    isDryRun: input.dry_run === true,
  });
}

function parse(text: string, zone: DnsZone): ParsedZone {
  try {
    return parseZoneFile(text, zone.name, zone.default_ttl);
  } catch (error) {
    if (!(error instanceof UnreadableZoneFile)) throw error;
    throw problem('zone_file_invalid', error.message, { line: error.line });
  }
}

interface FittedRecord {
  fields: RecordFields;
  /** Why it cannot be a record of the zone. */
  message: string | null;
  /** How it was changed. */
  note?: string;
}

/** The record relative to the zone. A CNAME of the apex, which some providers resolve themselves, becomes ALIAS. */
export function fitRecord(record: RecordFields, fqdn: string, zone: DnsZone): FittedRecord {
  if (record.type === 'CNAME' && fqdn === zone.name) {
    const note = `The CNAME record of ${fqdn} became ALIAS: the apex of a zone cannot have a CNAME.`;
    return { ...fitRecord({ ...record, type: 'ALIAS' }, fqdn, zone), note };
  }
  if (fqdn !== zone.name && !fqdn.endsWith(`.${zone.name}`))
    return { fields: record, message: `${fqdn} is not in the zone ${zone.name}.` };
  const name = fqdn === zone.name ? '@' : fqdn.slice(0, -zone.name.length - 1);
  const { record: fields, mistakes } = normalizeRecord({ ...record, name }, zone.name);
  const message = mistakes.map(({ field, detail }) => `${field} ${detail}`).join('; ');
  return { fields, message: message ? `The ${record.type} record of ${fqdn}: ${message}.` : null };
}

/** A record, and its line in the file; 0 for one that was found by a scan. */
export interface WantedRecord {
  line: number;
  fields: RecordFields;
}

export interface ImportResult extends Omit<DnsImport, 'records'> {
  records: DnsRecord[];
}

interface MergeOptions {
  errors: ZoneFileError[];
  notes: ZoneFileError[];
  skipped: number;
  isReplacing: boolean;
  isDryRun: boolean;
}

/**
 * Adds missing records; with `isReplacing`, removes records that the file lacks. @throws record_conflict,
 * quota_exceeded
 */
export async function merge(
  ctx: Context,
  zone: DnsZone,
  candidates: WantedRecord[],
  { errors, notes, skipped, isReplacing, isDryRun }: MergeOptions,
): Promise<ImportResult> {
  const all = await allRecords(ctx, zone);
  const current = new Map(all.map((record) => [identityOf(record), record]));
  const { wanted, undelegated } = withoutUndelegatedDs(candidates, isReplacing ? all.filter(isFixed) : all);
  const distinct = new Map(wanted.map((record) => [identityOf(record), record]));
  const changes: RecordChanges = { create: [], update: [], delete: [] };
  let same = wanted.length - distinct.size;
  for (const [identity, record] of distinct) {
    const known = current.get(identity);
    if (!known) changes.create.push(record);
    else if (isFixed(known) || isSame(known, record)) same += 1;
    else changes.update.push({ id: known.id, fields: { ...record, comment: known.comment } });
  }
  if (isReplacing)
    changes.delete = all.filter((record) => !isFixed(record) && !distinct.has(identityOf(record))).map(({ id }) => id);
  const counts = { created: changes.create.length, updated: changes.update.length, deleted: changes.delete.length };
  const result = {
    ...counts,
    skipped: skipped + same,
    errors: byLine([...errors, ...undelegated]),
    notes: byLine(notes),
  };
  if (isDryRun) return { ...result, records: await preview(ctx, zone, changes) };
  const { created, updated } = await changeRecords(ctx, zone, changes, () => ({ path: 'zone_file', index: null }));
  return { ...result, records: [...updated, ...created] };
}

/** Leaves out DS records whose name is not delegated. */
function withoutUndelegatedDs(
  candidates: WantedRecord[],
  kept: DnsRecord[],
): { wanted: RecordFields[]; undelegated: ZoneFileError[] } {
  const records = [...kept, ...candidates.map(({ fields }) => fields)];
  const delegated = new Set(records.filter(({ type }) => type === 'NS').map(({ name }) => name));
  const isUndelegated = ({ fields: { type, name } }: WantedRecord): boolean => type === 'DS' && !delegated.has(name);
  const undelegated = candidates.filter(isUndelegated).map(({ line, fields: { name } }) => {
    return { line, message: `The DS record of ${name}: the name has no NS records, so it is not delegated.` };
  });
  return { wanted: candidates.filter((one) => !isUndelegated(one)).map(({ fields }) => fields), undelegated };
}

const MESSAGE_CHARACTERS_MAX = 500;

/** A message quotes the file, whose tokens may be as long as the file. */
function byLine(list: ZoneFileError[]): ZoneFileError[] {
  const short = (text: string): string =>
    text.length > MESSAGE_CHARACTERS_MAX ? `${text.slice(0, MESSAGE_CHARACTERS_MAX)}…` : text;
  return list.map(({ line, message }) => ({ line, message: short(message) })).sort((a, b) => a.line - b.line);
}

function isFixed({ is_protected, managed_by }: DnsRecord): boolean {
  return is_protected || managed_by !== null;
}

function isSame(known: DnsRecord, record: RecordFields): boolean {
  return JSON.stringify(fieldsOf(known)) === JSON.stringify({ ...fieldsOf(record), comment: known.comment });
}

/** What the change would make: it is made, and taken back. */
async function preview(ctx: Context, zone: DnsZone, changes: RecordChanges): Promise<DnsRecord[]> {
  await ctx.sql.query(SAVEPOINT, []);
  const { created, updated } = await changeRecords(ctx, zone, changes, () => ({ path: 'zone_file', index: null }));
  await ctx.sql.query(ROLL_BACK, []);
  return [...updated, ...created];
}

const SAVEPOINT = named('savepoint dry_run');
const ROLL_BACK = named('rollback to savepoint dry_run');
