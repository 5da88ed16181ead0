// Record sets in the format of PowerDNS: names with a trailing dot, values in the presentation format of zone files.
import ipaddr from 'ipaddr.js';
import { groupBy } from '../../core/group_by';
import { localPartText } from '../../core/protocols/mailbox';
import { presentationOf, rdataOfValue } from '../../core/protocols/dns_records/presentation';
import { isRdataType, InvalidRdata, type RdataType } from '../../core/protocols/dns_records/rdata';
import { joinedText, textStrings } from '../../core/protocols/text_strings';
import type { ZoneRecord, ZoneSpec } from '../../engines/dns';
import type { ApiRrset } from './api';

/**
 * All record sets of a zone, including SOA and name servers. @param serial of the SOA; PowerDNS increments it itself
 */
export function rrsetsOf(spec: ZoneSpec, serial: number): ApiRrset[] {
  const { name: zone, default_ttl: ttl, name_servers } = spec;
  const platform = name_servers.map((value): ZoneRecord => ({ name: '@', type: 'NS', value, ttl }));
  const sets = groupBy([...platform, ...spec.records], ({ name, type }) => `${fullName(name, zone)} ${type}`);
  const soa = { name: `${zone}.`, type: 'SOA', ttl, records: [{ content: soaContent(spec, serial), disabled: false }] };
  return [soa, ...[...sets].map(([key, records]) => rrsetOf(key, records, ttl))];
}

/** PowerDNS 4.7 knows no later parameter of a service. */
const POWERDNS = { finalDot: '.', keyMax: 6 } as const;

function rrsetOf(key: string, records: ZoneRecord[], defaultTtl: number): ApiRrset {
  const [name, type] = key.split(' ') as [string, string];
  const ttl = Math.min(...records.map((record) => record.ttl ?? defaultTtl));
  const contents = [...new Set(records.map((record) => presentationOf(record, POWERDNS)))];
  return { name, type, ttl, records: contents.map((content) => ({ content, disabled: false })) };
}

function fullName(name: string, zone: string): string {
  return name === '@' ? `${zone}.` : `${name}.${zone}.`;
}

function soaContent({ name_servers, soa }: ZoneSpec, serial: number): string {
  const at = soa.email.lastIndexOf('@');
  const local = localPartText(soa.email.slice(0, at)).replace(/[.\\]/g, '\\$&').replaceAll(' ', '\\032');
  const mailbox = `${local}.${soa.email.slice(at + 1)}.`;
  const { refresh, retry, expire, minimum } = soa;
  return `${name_servers[0]}. ${mailbox} ${serial} ${refresh} ${retry} ${expire} ${minimum}`;
}

export interface RrsetChange extends Partial<ApiRrset> {
  name: string;
  type: string;
  changetype: 'DELETE' | 'REPLACE';
}

/** Changes from the current to the desired sets, deletions first: a name may change from CNAME to other types. */
export function changesBetween(present: ApiRrset[], desired: ApiRrset[]): RrsetChange[] {
  const known = new Map(present.map((set) => [keyOf(set), set]));
  const wanted = new Set(desired.map(keyOf));
  const gone = present.filter((set) => !wanted.has(keyOf(set)));
  const changed = desired.filter((set) => {
    const before = known.get(keyOf(set));
    return !before || normalForm(before) !== normalForm(set);
  });
  return [
    ...gone.map(({ name, type }) => ({ name, type, changetype: 'DELETE' as const })),
    ...changed.map((set) => ({ ...set, changetype: 'REPLACE' as const })),
  ];
}

function keyOf({ name, type }: ApiRrset): string {
  return `${name.toLowerCase()} ${type}`;
}

/** PowerDNS returns records in another format: case, zeros of IPv6, escapes of texts, the serial. */
function normalForm({ type, ttl, records }: ApiRrset): string {
  const contents = records.map(
    ({ content, disabled }) => `${disabled ? 'disabled ' : ''}${normalContent(type, content)}`,
  );
  return JSON.stringify([ttl, contents.sort()]);
}

function normalContent(type: string, content: string): string {
  if (type === 'TXT')
    return textStrings(content)
      .map((string) => string.toString('hex'))
      .join(' ');
  if (type === 'CAA') {
    const [flags, tag] = content.split(/\s+/, 2);
    return `${flags} ${tag} ${joinedText(content.slice(content.indexOf('"'))).toString('hex')}`;
  }
  if (isRdataType(type)) return normalRdata(type, content);
  if (type === 'AAAA') return ipaddr.isValid(content) ? ipaddr.parse(content).toString() : content;
  if (type === 'SOA')
    return content
      .toLowerCase()
      .split(/\s+/)
      .filter((_, index) => index !== 2)
      .join(' ');
  return content.toLowerCase();
}

/** Writes records in the form that PowerDNS expects. @returns false where that is another value, or no record has it */
export function adoptExpectedContent(
  changes: RrsetChange[],
  { content, expected }: { content: string; expected: string },
): boolean {
  const sets = changes.filter(({ type, records = [] }) => {
    return (
      records.some((one) => one.content === content) && normalContent(type, content) === normalContent(type, expected)
    );
  });
  for (const { records = [] } of sets) for (const one of records) if (one.content === content) one.content = expected;
  return sets.length > 0 && content !== expected;
}

/** Digits in upper or lower case, parameters with or without quotation marks: the bytes are the same. */
function normalRdata(type: RdataType, content: string): string {
  try {
    return rdataOfValue(type, content).toString('hex');
  } catch (error) {
    // Written by somebody else: replaced.
    if (error instanceof InvalidRdata) return content;
    throw error;
  }
}
