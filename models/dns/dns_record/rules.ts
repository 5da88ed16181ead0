// What a record may be (docs/contract/resources.md §12.2): names, values and numbers by type, and which records may
// stand beside each other.
import ipaddr from 'ipaddr.js';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { asciiNameOf, hostNameOf, internationalMistake, isRecordLabel } from '../../../core/protocols/domain_names';
import {
  isRdataType,
  normalRdata,
  InvalidRdata,
  tokenizeValue,
  type RdataType,
} from '../../../core/protocols/dns_records/rdata';
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
  const { value, detail: valueDetail } = normalizeValue(given.type, given.value);
  const refuse = (field: string, detail: string): unknown => mistakes.push({ field, code: 'invalid_format', detail });
  if (name === null) refuse('name', internationalMistake(given.name) ?? `must be a name below ${zone}, relative to it`);
  if (value === null) refuse('value', valueDetail);
  if (name !== null && value !== null && value === aliasValue(given.type, fqdnOf(name, zone)))
    refuse('value', 'must be another name than that of the record');
  const apexDetail = name === '@' && AWAY_FROM_APEX[given.type];
  if (apexDetail) mistakes.push({ field: 'type', code: 'invalid_format', detail: apexDetail });
  mistakes.push(...numberMistakes(given));
  return { record: { ...given, name: name ?? given.name, value: value ?? given.value }, mistakes };
}

/** The value of a record that leads from a name to itself; null for types that lead nowhere. */
function aliasValue(type: DnsType, fqdn: string): string | null {
  if (type === 'CNAME' || type === 'ALIAS') return fqdn;
  // The mode of an alias (RFC 9460 §2.4.2).
  return type === 'HTTPS' || type === 'SVCB' ? `0 ${fqdn}` : null;
}

const AWAY_FROM_APEX: Partial<Record<DnsType, string>> = {
  CNAME: 'cannot be CNAME at the apex; ALIAS can',
  // RFC 4035 §2.4.
  DS: 'cannot be DS at the apex: the DS record of a zone is in the zone above it, set at the registrar',
};

function valueDetailOf(type: PlainType, value: string): string {
  if (!HOSTS.has(type)) return DETAIL[type];
  if (isAddress(value)) return `${DETAIL[type]}, not an address; A and AAAA records have addresses`;
  return internationalMistake(value) ?? DETAIL[type];
}

type PlainType = Exclude<DnsType, RdataType>;

const HOST_DETAIL = 'must be a host name';
const DETAIL: Record<PlainType, string> = {
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

function normalizeValue(type: DnsType, value: string): { value: string | null; detail: string } {
  if (isRdataType(type)) return normalizeRdata(type, value);
  return { value: normalizePlain(type, value), detail: valueDetailOf(type, value) };
}

function normalizeRdata(type: RdataType, value: string): { value: string | null; detail: string } {
  try {
    const normal = normalRdata(type, tokenizeValue(value), hostOrRoot);
    const isTooLong = normal.length > TEXT_BYTES_MAX;
    return { value: isTooLong ? null : normal, detail: `must have at most ${TEXT_BYTES_MAX} characters` };
  } catch (error) {
    if (error instanceof InvalidRdata) return { value: null, detail: error.message };
    throw error;
  }
}

/** A host name in its normal form; a dot is the root. @returns null for neither */
export function hostOrRoot(word: string): string | null {
  return word === '.' ? '.' : normalizeHost(word);
}

function normalizePlain(type: PlainType, value: string): string | null {
  if (type === 'A') return isIPv4(value) ? value : null;
  if (type === 'AAAA') return isIPv6(value) && !value.includes('%') ? ipaddr.parse(value).toString() : null;
  if (type === 'TXT') return normalizeText(value);
  if (type === 'CAA') return /^[\x20-\x7e]{1,255}$/.test(value) ? value : null;
  if (value === '.') return type === 'MX' || type === 'SRV' ? '.' : null;
  return HOSTS.has(type) ? normalizeHost(value) : null;
}

function normalizeHost(value: string): string | null {
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

/**
 * What of the records of some names cannot be: a CNAME beside another record (RFC 1034 §3.6.2), an ALIAS beside
 * addresses, a DS without a delegation (RFC 4035 §2.4). null where all can
 */
export function conflictIn(records: readonly Pick<RecordFields, 'type' | 'name'>[]): string | null {
  const name = conflictingName(records);
  if (name !== null) return `The name ${name} cannot have these records at the same time.`;
  const delegated = new Set(records.filter(({ type }) => type === 'NS').map((record) => record.name));
  const digest = records.find((record) => record.type === 'DS' && !delegated.has(record.name));
  return digest ? `The name ${digest.name} has a DS record, so it needs NS records too.` : null;
}

/** A name of which two records exclude each other. */
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
