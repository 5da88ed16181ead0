// Zone files in the format of BIND (RFC 1035 §5): written, and read with line numbers. Held against named-checkzone in
// the tests.
import { parse } from 'tldts';
import { limits } from '../../../core/limits';
import { presentationOf } from '../../../core/protocols/dns_records/presentation';
import {
  zoneFileEntries,
  UnreadableZoneFile,
  type Entry,
  type Token,
} from '../../../core/protocols/dns_records/tokens';
import { SERVED_TYPES, typeOfWord } from '../../../core/protocols/dns_records/types';
import type { DnsType } from '../../../schema/types';
import { fqdnOf, type RecordFields } from '../dns_record/rules';
import { absolute, readData } from './zone_file_data';

/** A record of the file, its names absolute and without a trailing dot. */
interface ParsedRecord {
  line: number;
  /** Full name; null for a type that the platform does not have. */
  record: RecordFields | null;
  /** SOA, or a type that is not supported. */
  type: string;
  fqdn: string;
}

export interface ZoneFileError {
  line: number;
  message: string;
}

export interface ParsedZone {
  records: ParsedRecord[];
  errors: ZoneFileError[];
  /** Entries that were imported with a changed meaning. */
  notes: ZoneFileError[];
}

/** Some are skipped, or there already: more would keep the process from other requests for seconds. */
const ENTRIES_MAX = 2 * limits.recordsPerDnsZone;
const TYPES = new Set<string>(['ALIAS', ...SERVED_TYPES]);
const OTHER_TYPE = /^(?:TYPE\d+|SOA|[A-Z][A-Z0-9-]*)$/;
const CLASS = /^(?:IN|CH|HS|CS|CLASS\d+)$/i;
const UNIT_SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
const TTL_MAX = 2 ** 31 - 1;
/** What a record may have (schema/dns/dns_record.graphql). */
const TTL_SECONDS = { min: 60, max: 86_400 };

/**
 * @param defaultTtl of the zone; records whose `$TTL` equals it are stored without a TTL
 * @throws UnreadableZoneFile
 */
export function parseZoneFile(text: string, zone: string, defaultTtl: number): ParsedZone {
  const state: State = { zone, origin: zone, ttl: null, owner: zone, last: null, defaultTtl };
  const parsed: ParsedZone = { records: [], errors: [], notes: [] };
  let count = 0;
  for (const entry of zoneFileEntries(text)) {
    count += 1;
    if (count > ENTRIES_MAX)
      throw new UnreadableZoneFile(
        entry.line,
        `The file has more than ${ENTRIES_MAX} entries. A zone may have ${limits.recordsPerDnsZone} records.`,
      );
    const [first] = entry.tokens as [Token];
    if (!entry.startsBlank && first.raw.startsWith('$')) readDirective(entry, state, parsed);
    else readRecord(entry, state, parsed);
  }
  return parsed;
}

interface State {
  zone: string;
  origin: string;
  /** Of $TTL. */
  ttl: number | null;
  owner: string;
  /** TTL of the record before (RFC 1035 §5.1), where there was no $TTL. */
  last: number | null;
  defaultTtl: number;
}

const REMEDIES: Record<string, string> = {
  $GENERATE: 'Write its records one by one.',
  $INCLUDE: 'Import the other file too.',
};

function readDirective({ tokens, line }: Entry, state: State, parsed: ParsedZone): void {
  const [directive = '', value, ...rest] = tokens.map(({ raw }) => raw);
  const name = directive.toUpperCase();
  const remedy = REMEDIES[name];
  if (remedy !== undefined) return void parsed.errors.push({ line, message: `${name} is not supported. ${remedy}` });
  if (name !== '$ORIGIN' && name !== '$TTL') throw new UnreadableZoneFile(line, `${directive} is not supported.`);
  if (!value || rest.length) throw new UnreadableZoneFile(line, `${directive} needs one value.`);
  if (name === '$ORIGIN') {
    const origin = absolute(value, state.origin);
    noteMissingDot(parsed, { line, what: 'origin', word: value, name: origin, isFull: isBelow(value, state.zone) });
    state.origin = origin;
    return;
  }
  const ttl = parseTtl(value);
  if (ttl === null) throw new UnreadableZoneFile(line, `${value} is not a TTL.`);
  state.ttl = clampTtl(ttl, line, parsed);
}

/** What a record may have; a note says so where that is another TTL. */
function clampTtl(ttl: number, line: number, { notes }: ParsedZone): number {
  const clamped = withinLimits(ttl);
  if (clamped !== ttl)
    notes.push({ line, message: `The TTL ${ttl} is not from ${TTL_SECONDS.min} to ${TTL_SECONDS.max}: ${clamped}.` });
  return clamped;
}

function withinLimits(ttl: number): number;
function withinLimits(ttl: number | null): number | null;
function withinLimits(ttl: number | null): number | null {
  return ttl === null ? null : Math.min(Math.max(ttl, TTL_SECONDS.min), TTL_SECONDS.max);
}

function readRecord(entry: Entry, state: State, parsed: ParsedZone): void {
  const { line } = entry;
  const tokens = [...entry.tokens];
  const written = entry.startsBlank ? null : (tokens.shift() as Token).raw;
  if (written !== null) state.owner = absolute(written, state.origin);
  let ttl: number | null = null;
  for (;;) {
    const [next] = tokens;
    if (!next) return void parsed.errors.push({ line, message: 'The record has no type.' });
    if (CLASS.test(next.raw)) {
      if (next.raw.toUpperCase() !== 'IN')
        return void parsed.errors.push({ line, message: `The class ${next.raw} is not supported.` });
    } else if (ttl === null && /^\d/.test(next.raw) && parseTtl(next.raw) !== null) ttl = parseTtl(next.raw);
    else break;
    tokens.shift();
  }
  const type = typeOfWord((tokens.shift() as Token).raw);
  const { owner: fqdn, zone } = state;
  if (written !== null && type !== 'SOA')
    noteMissingDot(parsed, { line, what: 'name', word: written, name: fqdn, isFull: isBelow(written, zone) });
  // Without any TTL, the TTL of negative answers (SOA minimum) is the default, as in BIND.
  const inherited = state.ttl ?? state.last ?? (type === 'SOA' ? minimumOf(tokens) : null);
  state.last = withinLimits(ttl ?? inherited);
  if (!TYPES.has(type)) {
    const message = OTHER_TYPE.test(type) ? `The type ${type} is not supported.` : `${type} is not a type.`;
    if (type !== 'SOA') parsed.errors.push({ line, message });
    else parsed.records.push({ line, record: null, type, fqdn });
    return;
  }
  const record = readData(type as DnsType, tokens, state.origin);
  if (typeof record === 'string') return void parsed.errors.push({ line, message: record });
  if (ttl !== null) ttl = clampTtl(ttl, line, parsed);
  const own = ttl ?? (inherited === state.defaultTtl ? null : inherited);
  parsed.records.push({ line, type, fqdn, record: { ...record, name: fqdn, ttl: own } });
  if (HOSTS.has(type)) {
    const word = tokens.at(-1)?.raw ?? '';
    noteMissingDot(parsed, { line, what: 'value', word, name: record.value, isFull: isOfInternet(word) });
  }
  if (PROXIED.test(entry.comment))
    parsed.notes.push({ line, message: `The ${type} record of ${fqdn} was proxied: ${PROXIED_NOTE}` });
}

interface Word {
  line: number;
  what: string;
  word: string;
  /** What it became. */
  name: string;
  /** It looks like a full name. */
  isFull: boolean;
}

/** A name without a dot at its end is relative to the origin (RFC 1035 §5.1), which some programs forget. */
function noteMissingDot({ notes }: ParsedZone, { line, what, word, name, isFull }: Word): void {
  if (!isFull || word.endsWith('.') || word.toLowerCase() === name) return;
  notes.push({ line, message: `The ${what} ${word} has no dot at its end, so it became ${name}.` });
}

function isBelow(word: string, zone: string): boolean {
  return `.${word.toLowerCase()}`.endsWith(`.${zone}`);
}

/** Types whose value ends with a host name. */
const HOSTS = new Set(['ALIAS', 'CNAME', 'MX', 'NS', 'PTR', 'SRV']);

function isOfInternet(word: string): boolean {
  return word.includes('.') && parse(word, { validateHostname: false }).isIcann === true;
}

/** As exports of Cloudflare mark such a record. The file has its value, not the addresses that were answered. */
const PROXIED = /\bcf-proxied:true\b/;
const PROXIED_NOTE = 'its value is answered from now on, and clients connect to it directly.';

/** The last number of a SOA record. */
function minimumOf(tokens: Token[]): number | null {
  const last = tokens.at(-1);
  return tokens.length === 7 && last ? parseTtl(last.raw) : null;
}

/** Seconds, or with units as BIND has them: 1h30m. */
function parseTtl(text: string): number | null {
  if (/^\d{1,10}$/.test(text)) return Number(text) <= TTL_MAX ? Number(text) : null;
  if (!/^(?:\d{1,9}[smhdw])+$/i.test(text)) return null;
  const parts = [...text.toLowerCase().matchAll(/(\d+)([smhdw])/g)];
  const seconds = parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNIT_SECONDS[unit as string] ?? 0), 0);
  return seconds <= TTL_MAX ? seconds : null;
}

/** A file that imports again as the same records. */
export function writeZoneFile(zone: string, defaultTtl: number, records: readonly RecordFields[]): string {
  const lines = records.map((record) => {
    const ttl = record.ttl === null ? '' : `${record.ttl} `;
    return `${fqdnOf(record.name, zone)}. ${ttl}IN ${record.type} ${presentationOf(record)}`;
  });
  return [`$ORIGIN ${zone}.`, `$TTL ${defaultTtl}`, ...lines, ''].join('\n');
}
