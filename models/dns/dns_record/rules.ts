// What a record may be (docs/contract/resources.md §12.2): names, values and numbers by type, and which records may
// stand beside each other.
import ipaddr from 'ipaddr.js';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { asciiNameOf, hostNameOf, internationalMistake, isRecordLabel } from '../../../core/protocols/domain_names';
import { isQuotedText, joinedText, textStrings, valueOfStrings } from '../../../core/protocols/text_strings';
import type { DnsCaaTag, DnsType } from '../../../schema/types';

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
const TEXT_STRINGS_MAX = 256;
/** Types whose value is a host name. */
const HOSTS = new Set<DnsType>(['ALIAS', 'CNAME', 'MX', 'NS', 'PTR', 'SRV']);

/** The record in its normal form, and everything that is wrong with it. */
export function normalizeRecord(
  given: RecordFields,
  zone: string,
): { record: RecordFields; mistakes: RecordMistake[] } {
  const mistakes: RecordMistake[] = [];
  const name = normalizeName(given.name, zone);
  const value = normalizeValue(given.type, given.value);
  const refuse = (field: string, detail: string): unknown => mistakes.push({ field, code: 'invalid_format', detail });
  if (name === null) refuse('name', internationalMistake(given.name) ?? `must be a name below ${zone}, relative to it`);
  if (value === null) refuse('value', valueDetail(given));
  if ((given.type === 'CNAME' || given.type === 'ALIAS') && name !== null && value === fqdnOf(name, zone))
    refuse('value', 'must be another name than that of the record');
  if (given.type === 'CNAME' && name === '@')
    mistakes.push({ field: 'type', code: 'invalid_format', detail: 'cannot be CNAME at the apex; ALIAS can' });
  mistakes.push(...numberMistakes(given));
  return { record: { ...given, name: name ?? given.name, value: value ?? given.value }, mistakes };
}

function valueDetail({ type, value }: RecordFields): string {
  if (!HOSTS.has(type)) return DETAIL[type];
  if (isAddress(value)) return `${DETAIL[type]}, not an address; A and AAAA records have addresses`;
  return internationalMistake(value) ?? DETAIL[type];
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
  TXT:
    `must be text of at most ${TEXT_BYTES_MAX} bytes without control characters, or quoted strings of as many bytes, ` +
    `${TEXT_STRINGS_MAX} at most`,
};

/** Relative, in lower case and ASCII; `@` is the apex. The name of the zone with its dot at the end is taken off. */
function normalizeName(text: string, zone: string): string | null {
  const ascii = asciiNameOf(text);
  if (ascii === null || ascii === '@' || ascii === `${zone}.`) return ascii && '@';
  const relative = ascii.endsWith(`.${zone}.`) ? ascii.slice(0, -zone.length - 2) : ascii;
  const fqdn = `${relative}.${zone}`;
  const isName = relative
    .split('.')
    .every((label, index) => (index === 0 && label === '*') || isRecordLabel(label, fqdn));
  return isName && fqdn.length <= NAME_CHARACTERS_MAX ? relative : null;
}

function normalizeValue(type: DnsType, value: string): string | null {
  if (type === 'A') return isIPv4(value) ? value : null;
  if (type === 'AAAA') return isIPv6(value) && !value.includes('%') ? ipaddr.parse(value).toString() : null;
  if (type === 'TXT') return normalizeText(value);
  if (type === 'CAA') return /^[\x20-\x7e]{1,255}$/.test(value) ? value : null;
  if (HOSTS.has(type)) return normalizeHost(type, value);
  return null;
}

function normalizeHost(type: DnsType, value: string): string | null {
  if (value === '.') return type === 'MX' || type === 'SRV' ? '.' : null;
  const name = asciiNameOf(value.replace(/\.$/, ''));
  if (name === null || name.length > NAME_CHARACTERS_MAX || isAddress(name)) return null;
  const labels = name.split('.');
  return labels.length > 1 && labels.every((label) => isRecordLabel(label, name)) ? name : hostNameOf(value);
}

/** Also abbreviated addresses such as 10.1: no top-level domain is a number (RFC 3696 §2). */
function isAddress(text: string): boolean {
  return isIP(text) !== 0 || /(^|\.)\d+\.?$/.test(text);
}

/** Plain text where it says the same as the strings that were given. */
function normalizeText(value: string): string | null {
  if (!isQuotedText(value) && /\p{Cc}|\p{Surrogate}/u.test(value)) return null;
  const strings = textStrings(value);
  const normal = valueOfStrings(strings);
  return strings.length <= TEXT_STRINGS_MAX && joinedText(normal).length <= TEXT_BYTES_MAX ? normal : null;
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
