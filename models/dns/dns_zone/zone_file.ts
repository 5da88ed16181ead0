// Zone files in the format of BIND (RFC 1035 §5): written, and read with line numbers. Held against named-checkzone in
// the tests.
import { asciiNameOf } from '../../../core/protocols/domain_names';
import { quoteString, textStrings, valueOfStrings } from '../../../core/protocols/text_strings';
import type { DnsCaaTag, DnsType } from '../../../schema/types';
import { fqdnOf, type RecordFields } from '../dns_record/rules';
import { zoneFileEntries, UnreadableZoneFile, type Entry, type Token } from './zone_file_tokens';

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

const TYPES = new Set(['A', 'AAAA', 'ALIAS', 'CAA', 'CNAME', 'MX', 'NS', 'PTR', 'SRV', 'TXT']);
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
  const state: State = { origin: zone, ttl: null, owner: zone, last: null, defaultTtl };
  const parsed: ParsedZone = { records: [], errors: [], notes: [] };
  for (const entry of zoneFileEntries(text)) {
    const [first] = entry.tokens as [Token];
    if (!entry.startsBlank && first.raw.startsWith('$')) readDirective(entry, state, parsed);
    else readRecord(entry, state, parsed);
  }
  return parsed;
}

interface State {
  origin: string;
  /** Of $TTL. */
  ttl: number | null;
  owner: string;
  /** TTL of the record before (RFC 1035 §5.1), where there was no $TTL. */
  last: number | null;
  defaultTtl: number;
}

function readDirective({ tokens, line }: Entry, state: State, parsed: ParsedZone): void {
  const [directive = '', value, ...rest] = tokens.map(({ raw }) => raw);
  const name = directive.toUpperCase();
  if (name === '$GENERATE') {
    const message = '$GENERATE is not supported. Write its records one by one.';
    return void parsed.errors.push({ line, message });
  }
  if (name !== '$ORIGIN' && name !== '$TTL') throw new UnreadableZoneFile(line, `${directive} is not supported.`);
  if (!value || rest.length) throw new UnreadableZoneFile(line, `${directive} needs one value.`);
  if (name === '$ORIGIN') {
    state.origin = absolute(value, state.origin);
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
  if (!entry.startsBlank) state.owner = absolute((tokens.shift() as Token).raw, state.origin);
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
  const type = (tokens.shift() as Token).raw.toUpperCase();
  const { owner: fqdn } = state;
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
}

/** The last number of a SOA record. */
function minimumOf(tokens: Token[]): number | null {
  const last = tokens.at(-1);
  return tokens.length === 7 && last ? parseTtl(last.raw) : null;
}

function readText(tokens: Token[]): Omit<RecordFields, 'name'> {
  return { ...NONE, type: 'TXT', value: valueOfStrings(tokens.map(({ bytes }) => bytes)) };
}

const NONE = { ttl: null, priority: null, weight: null, port: null, flags: null, tag: null, comment: null };

/** @returns an error message where the data do not fit the type */
function readData(type: DnsType, tokens: Token[], origin: string): Omit<RecordFields, 'name'> | string {
  const counts: Partial<Record<DnsType, number>> = { MX: 2, SRV: 4, CAA: 3 };
  const expected = counts[type] ?? 1;
  if (type === 'TXT' ? tokens.length < 1 : tokens.length !== expected)
    return `A record of type ${type} needs ${type === 'TXT' ? 'at least one value' : `${expected} values`}.`;
  if (type === 'TXT') return readText(tokens);
  const words = tokens.map(({ raw }) => raw);
  const last = tokens.at(-1) as Token;
  if (type === 'A' || type === 'AAAA') return { ...NONE, type, value: last.raw };
  const numbers = words.slice(0, -1).map((word) => (/^\d{1,5}$/.test(word) ? Number(word) : NaN));
  if (type === 'CAA') {
    const [flags = NaN] = numbers;
    const tag = words[1]?.toLowerCase();
    if (Number.isNaN(flags) || flags > 255) return `${words[0]} are not flags of a CAA record.`;
    if (tag !== 'issue' && tag !== 'issuewild' && tag !== 'iodef') return `The CAA tag ${words[1]} is not supported.`;
    return { ...NONE, type, value: last.bytes.toString('utf8'), flags, tag: tag as DnsCaaTag };
  }
  const wrong = numbers.findIndex((number) => Number.isNaN(number) || number > 65_535);
  if (wrong >= 0) return `${words[wrong]} is not a number from 0 to 65535.`;
  const value = absolute(last.raw, origin) || '.';
  const [priority = null, weight = null, port = null] = numbers;
  return { ...NONE, type, value, priority, weight, port };
}

/**
 * RFC 1035 §5.1: a name without a trailing dot is relative to the origin. Lower case, without the trailing dot; the
 * root is empty. Escapes are resolved, except escaped dots, which are part of a label.
 */
function absolute(name: string, origin: string): string {
  if (name === '@') return origin;
  if (name === '.') return '';
  // Some programs write `*` as \052, in octal. By RFC 1035 §5.1 that is decimal 52, the digit 4, which needs no escape.
  const text = name
    .replace(/^\\052(?=\.|$)/, '*')
    .replace(/\\(?:(\d{3})|([^]))/g, (escape: string, code?: string, letter?: string) => {
      const meant = code === undefined ? (letter as string) : String.fromCharCode(Number(code));
      return meant === '.' ? escape : meant;
    });
  const lower = asciiNameOf(text) ?? text.toLowerCase();
  if (lower.endsWith('.') && !lower.endsWith('\\.')) return lower.slice(0, -1);
  return origin ? `${lower}.${origin}` : lower;
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
    return `${fqdnOf(record.name, zone)}. ${ttl}IN ${record.type} ${dataOf(record)}`;
  });
  return [`$ORIGIN ${zone}.`, `$TTL ${defaultTtl}`, ...lines, ''].join('\n');
}

function dataOf({ type, value, priority, weight, port, flags, tag }: RecordFields): string {
  const host = value === '.' ? '.' : `${value}.`;
  if (type === 'A' || type === 'AAAA') return value;
  if (type === 'TXT') return textStrings(value).map(quoteString).join(' ');
  if (type === 'CAA') return `${flags} ${tag} ${quoteString(Buffer.from(value))}`;
  if (type === 'MX') return `${priority} ${host}`;
  if (type === 'SRV') return `${priority} ${weight} ${port} ${host}`;
  return host;
}
