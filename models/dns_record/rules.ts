// What a record may be (docs/contract/resources.md §12.2): names, values and numbers by type, and which records may
// stand beside each other.
import ipaddr from 'ipaddr.js';
import { isIPv4, isIPv6 } from 'node:net';
import { formats } from '../../core/formats';
import type { DnsCaaTag, DnsType } from '../../schema/types';

/** A record as a client writes it; absent is null. */
export interface RecordFields {
  type: DnsType;
  name: string;
  value: string;
  ttl: number | null;
  priority: number | null;
  weight: number | null;
  port: number | null;
  flags: number | null;
  tag: DnsCaaTag | null;
  comment: string | null;
}

export interface RecordMistake {
  field: string;
  code: 'invalid_format' | 'depends_on' | 'too_long';
  detail: string;
}

type NumberField = 'priority' | 'weight' | 'port' | 'flags' | 'tag';

const NEEDED: Partial<Record<DnsType, NumberField[]>> = {
  MX: ['priority'],
  SRV: ['priority', 'weight', 'port'],
  CAA: ['flags', 'tag'],
};
const NUMBER_FIELDS: NumberField[] = ['priority', 'weight', 'port', 'flags', 'tag'];
const NAME_CHARACTERS_MAX = 253;
const TEXT_BYTES_MAX = 4096;
/** Types whose value is a host name. */
const HOSTS = new Set<DnsType>(['ALIAS', 'CNAME', 'MX', 'NS', 'PTR', 'SRV']);

/** The record in its normal form, and everything that is wrong with it. */
export function normalizeRecord(
  given: RecordFields,
  zone: string,
): { record: RecordFields; mistakes: RecordMistake[] } {
  const mistakes: RecordMistake[] = [];
  const name = normalizeName(given.name, zone);
  if (name === null)
    mistakes.push({ field: 'name', code: 'invalid_format', detail: `must be a name below ${zone}, relative to it` });
  const value = normalizeValue(given.type, given.value);
  if (value === null) mistakes.push({ field: 'value', code: 'invalid_format', detail: DETAIL[given.type] });
  if (given.type === 'CNAME' && name === '@')
    mistakes.push({ field: 'type', code: 'invalid_format', detail: 'cannot be CNAME at the apex; ALIAS can' });
  mistakes.push(...numberMistakes(given));
  return { record: { ...given, name: name ?? given.name, value: value ?? given.value }, mistakes };
}

const HOST_DETAIL = 'must be a host name';
const DETAIL: Record<DnsType, string> = {
  A: 'must be an IPv4 address',
  AAAA: 'must be an IPv6 address',
  ALIAS: HOST_DETAIL,
  CAA: 'must be the domain of an authority with optional parameters, a semicolon, or for iodef an address',
  CNAME: HOST_DETAIL,
  MX: 'must be a host name, or a dot to accept no mail',
  NS: HOST_DETAIL,
  PTR: HOST_DETAIL,
  SRV: 'must be a host name, or a dot where the service is not offered',
  TXT: `must be text of at most ${TEXT_BYTES_MAX} bytes without control characters`,
};

/** Relative, in lower case; `@` is the apex. A trailing dot or the name of the zone at the end is taken off. */
function normalizeName(text: string, zone: string): string | null {
  const lower = text.toLowerCase();
  if (lower === '@' || lower === `${zone}.`) return '@';
  const relative = lower.endsWith(`.${zone}.`) ? lower.slice(0, -zone.length - 2) : lower;
  const labels = relative.split('.');
  const isName = labels.every((label, index) => (index === 0 && label === '*') || isLabel(label));
  return isName && relative.length + 1 + zone.length <= NAME_CHARACTERS_MAX ? relative : null;
}

/** Host names and service labels alike (RFC 2782, RFC 8552): underscores are allowed. */
function isLabel(label: string): boolean {
  return /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label);
}

function normalizeValue(type: DnsType, value: string): string | null {
  if (type === 'A') return isIPv4(value) ? value : null;
  if (type === 'AAAA') return isIPv6(value) && !value.includes('%') ? ipaddr.parse(value).toString() : null;
  if (type === 'TXT') return isText(value) ? value : null;
  if (type === 'CAA') return /^[\x20-\x7e]{1,255}$/.test(value) ? value : null;
  if (HOSTS.has(type)) return normalizeHost(type, value);
  return null;
}

function normalizeHost(type: DnsType, value: string): string | null {
  if (value === '.') return type === 'MX' || type === 'SRV' ? '.' : null;
  const name = value.replace(/\.$/, '').toLowerCase();
  const labels = name.split('.');
  if (labels.length > 1 && name.length <= NAME_CHARACTERS_MAX && labels.every(isLabel)) return name;
  return formats.hostname(name)?.value ?? null;
}

function isText(value: string): boolean {
  return !/\p{Cc}|\p{Surrogate}/u.test(value) && Buffer.byteLength(value) <= TEXT_BYTES_MAX;
}

function numberMistakes(given: RecordFields): RecordMistake[] {
  const needed = NEEDED[given.type] ?? [];
  return NUMBER_FIELDS.flatMap((field): RecordMistake[] => {
    const isGiven = given[field] !== null;
    if (isGiven === needed.includes(field)) return [];
    const detail = isGiven ? `is not for ${given.type} records` : `is needed by ${given.type} records`;
    return [{ field, code: 'depends_on', detail }];
  });
}

/** What makes two records the same one. */
export function identityOf(record: Pick<RecordFields, 'type' | 'name' | 'value' | 'priority'>): string {
  return [record.type, record.name, record.value, record.priority ?? ''].join('\0');
}

/** A name at which a CNAME would stand beside another record (RFC 1034 §3.6.2), or an ALIAS beside addresses. */
export function conflictingName(records: readonly Pick<RecordFields, 'type' | 'name'>[]): string | null {
  const typesByName = new Map<string, DnsType[]>();
  for (const { name, type } of records) typesByName.set(name, [...(typesByName.get(name) ?? []), type]);
  for (const [name, types] of typesByName) {
    if (types.includes('CNAME') && types.length > 1) return name;
    const aliases = types.filter((type) => type === 'ALIAS').length;
    if (aliases > 1 || (aliases && types.some((type) => type === 'A' || type === 'AAAA'))) return name;
  }
  return null;
}

/** Full name of a record. */
export function fqdnOf(name: string, zone: string): string {
  return name === '@' ? zone : `${name}.${zone}`;
}
