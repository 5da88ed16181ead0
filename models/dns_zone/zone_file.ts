// Zone files in the format of BIND (RFC 1035 §5): written, and read with line numbers. Held against named-checkzone in
// the tests.
import { isUtf8 } from 'node:buffer';
import type { DnsCaaTag, DnsType } from '../../schema/types';
import { fqdnOf, type RecordFields } from '../dns_record/rules';

/** A record of the file, its names absolute and without a trailing dot. */
export interface ParsedRecord {
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
}

/** The file cannot be read from this line on: a quote or a parenthesis without its end, an unknown directive. */
export class UnreadableZoneFile extends Error {
  override readonly name = 'UnreadableZoneFile';

  constructor(
    readonly line: number,
    message: string,
  ) {
    super(message);
  }
}

interface Token {
  /** Escapes resolved. */
  bytes: Buffer;
  /** As it stands in the file, without quotation marks. */
  raw: string;
}

interface Entry {
  line: number;
  startsBlank: boolean;
  tokens: Token[];
}

const TYPES = new Set(['A', 'AAAA', 'ALIAS', 'CAA', 'CNAME', 'MX', 'NS', 'PTR', 'SRV', 'TXT']);
const OTHER_TYPE = /^(?:TYPE\d+|SOA|[A-Z][A-Z0-9-]*)$/;
const CLASS = /^(?:IN|CH|HS|CS|CLASS\d+)$/i;
const UNIT_SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
const TTL_MAX = 2 ** 31 - 1;
/** What a record may have (schema/dns_record.graphql). */
const TTL_SECONDS = { min: 60, max: 86_400 };

/**
 * @param defaultTtl of the zone; records with this TTL of `$TTL` get none of their own
 * @throws UnreadableZoneFile
 */
export function parseZoneFile(text: string, zone: string, defaultTtl: number): ParsedZone {
  const state: State = { origin: zone, ttl: null, owner: zone, last: null, defaultTtl };
  const parsed: ParsedZone = { records: [], errors: [] };
  for (const entry of entriesOf(text)) {
    const [first] = entry.tokens as [Token];
    if (!entry.startsBlank && first.raw.startsWith('$')) readDirective(entry, state);
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

function readDirective({ tokens, line }: Entry, state: State): void {
  const [directive, value, ...rest] = tokens.map(({ raw }) => raw);
  if (!value || rest.length) throw new UnreadableZoneFile(line, `${directive} needs one value.`);
  if (directive?.toUpperCase() === '$ORIGIN') {
    state.origin = absolute(value, state.origin);
    return;
  }
  if (directive?.toUpperCase() === '$TTL') {
    state.ttl = parseTtl(value);
    if (state.ttl === null) throw new UnreadableZoneFile(line, `${value} is not a TTL.`);
    return;
  }
  throw new UnreadableZoneFile(line, `${directive} is not supported.`);
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
  if (!TYPES.has(type)) {
    const message = OTHER_TYPE.test(type) ? `The type ${type} is not supported.` : `${type} is not a type.`;
    if (type !== 'SOA') parsed.errors.push({ line, message });
    else parsed.records.push({ line, record: null, type, fqdn });
    return;
  }
  const inherited = state.ttl ?? state.last;
  state.last = ttl ?? inherited;
  const record = readData(type as DnsType, tokens, state.origin);
  if (typeof record === 'string') return void parsed.errors.push({ line, message: record });
  const own = ttl ?? (inherited === state.defaultTtl ? null : inherited);
  if (own !== null && (own < TTL_SECONDS.min || own > TTL_SECONDS.max)) {
    const message = `The TTL ${own} is not from ${TTL_SECONDS.min} to ${TTL_SECONDS.max}.`;
    return void parsed.errors.push({ line, message });
  }
  parsed.records.push({ line, type, fqdn, record: { ...record, name: fqdn, ttl: own } });
}

function readText(tokens: Token[]): Omit<RecordFields, 'name'> | string {
  const bytes = Buffer.concat(tokens.map(({ bytes }) => bytes));
  // The API has text: other bytes would come back as something else.
  return isUtf8(bytes) ? { ...NONE, type: 'TXT', value: bytes.toString() } : 'The text is not in UTF-8.';
}

const NONE = { ttl: null, priority: null, weight: null, port: null, flags: null, tag: null, comment: null };

/** @returns what is wrong, where the data do not fit the type */
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
  const value = last.raw === '.' ? '.' : absolute(last.raw, origin);
  const [priority = null, weight = null, port = null] = numbers;
  return { ...NONE, type, value, priority, weight, port };
}

/** RFC 1035 §5.1: a name without a trailing dot is relative to the origin. Lower case, without the trailing dot. */
function absolute(name: string, origin: string): string {
  if (name === '@') return origin;
  const lower = name.toLowerCase();
  return lower.endsWith('.') ? lower.slice(0, -1) : `${lower}.${origin}`;
}

/** Seconds, or with units as BIND has them: 1h30m. */
function parseTtl(text: string): number | null {
  if (/^\d{1,10}$/.test(text)) return Number(text) <= TTL_MAX ? Number(text) : null;
  if (!/^(?:\d{1,9}[smhdw])+$/i.test(text)) return null;
  const parts = [...text.toLowerCase().matchAll(/(\d+)([smhdw])/g)];
  const seconds = parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNIT_SECONDS[unit as string] ?? 0), 0);
  return seconds <= TTL_MAX ? seconds : null;
}

/** Lines, with those in parentheses joined, without comments. */
function* entriesOf(text: string): Generator<Entry> {
  const source = text.replace(/^\ufeff/, '');
  let at = 0;
  let line = 1;
  let depth = 0;
  let opened = 0;
  let entry: Entry | null = null;
  while (at < source.length) {
    const letter = source[at] as string;
    if (letter === '\n') {
      if (!depth && entry?.tokens.length) yield entry;
      if (!depth) entry = null;
      line += 1;
      at += 1;
      continue;
    }
    entry ??= { line, startsBlank: /[ \t]/.test(letter), tokens: [] };
    if (/[ \t\r\f]/.test(letter)) at += 1;
    else if (letter === ';') at = endOfLine(source, at);
    else if (letter === '(' || letter === ')') {
      depth += letter === '(' ? 1 : -1;
      if (letter === '(') opened = line;
      if (depth < 0) throw new UnreadableZoneFile(line, 'There is a closing parenthesis without an opening one.');
      at += 1;
    } else {
      const { token, end } = tokenAt(source, at, line);
      entry.tokens.push(token);
      at = end;
    }
  }
  if (depth) throw new UnreadableZoneFile(opened, 'The parenthesis is not closed.');
  if (entry?.tokens.length) yield entry;
}

function endOfLine(source: string, at: number): number {
  const end = source.indexOf('\n', at);
  return end < 0 ? source.length : end;
}

function tokenAt(source: string, start: number, line: number): { token: Token; end: number } {
  const isQuoted = source[start] === '"';
  let at = isQuoted ? start + 1 : start;
  const bytes: Buffer[] = [];
  for (;;) {
    const letter = source[at];
    if (letter === undefined || letter === '\n') {
      if (isQuoted) throw new UnreadableZoneFile(line, 'The quotation mark is not closed.');
      break;
    }
    if (isQuoted ? letter === '"' : /[ \t\r\f;()"]/.test(letter)) break;
    const [, digits] = letter === '\\' ? (/^\\(\d{3})/.exec(source.slice(at, at + 4)) ?? []) : [];
    if (digits !== undefined) {
      if (Number(digits) > 255) throw new UnreadableZoneFile(line, `\\${digits} is not a byte.`);
      bytes.push(Buffer.from([Number(digits)]));
      at += 4;
    } else {
      const from = letter === '\\' ? at + 1 : at;
      const point = source.codePointAt(from);
      if (point === undefined) throw new UnreadableZoneFile(line, 'The file ends within an escape.');
      bytes.push(Buffer.from(String.fromCodePoint(point)));
      at = from + (point > 0xffff ? 2 : 1);
    }
  }
  const raw = source.slice(isQuoted ? start + 1 : start, at);
  return { token: { bytes: Buffer.concat(bytes), raw }, end: isQuoted ? at + 1 : at };
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
  if (type === 'TXT') return quotedChunks(value);
  if (type === 'CAA') return `${flags} ${tag} ${quoted(Buffer.from(value))}`;
  if (type === 'MX') return `${priority} ${host}`;
  if (type === 'SRV') return `${priority} ${weight} ${port} ${host}`;
  return host;
}

const STRING_BYTES_MAX = 255;

function quotedChunks(value: string): string {
  const bytes = Buffer.from(value);
  const chunks: string[] = [];
  for (let at = 0; at < bytes.length; at += STRING_BYTES_MAX)
    chunks.push(quoted(bytes.subarray(at, at + STRING_BYTES_MAX)));
  return chunks.join(' ');
}

/** Bytes that are not printable ASCII as \DDD. */
function quoted(bytes: Buffer): string {
  const letters = [...bytes].map((byte) => {
    if (byte === 0x22 || byte === 0x5c) return `\\${String.fromCharCode(byte)}`;
    return byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\${String(byte).padStart(3, '0')}`;
  });
  return `"${letters.join('')}"`;
}
