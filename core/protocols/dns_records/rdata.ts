// Record types whose value is their whole RDATA in the presentation format of zone files. A type is a row of the table:
// its number, its fields, and what these must be together. Reading, writing, canonical form and wire format follow.
import {
  hex,
  name,
  number,
  RDATA_BYTES_MAX,
  InvalidRdata,
  shortenedToken,
  string,
  type Bytes,
  type Field,
  type Style,
  type TokenReader,
} from './fields';
import { location } from './location';
import { serviceParameters } from './service_binding';
import { UnreadableZoneFile, zoneFileEntries, type Token } from './tokens';

export { InvalidRdata } from './fields';

interface RdataFormat {
  number: number;
  fields: readonly Field[];
  /** @returns what is wrong with the fields together */
  mistake?(data: Buffer): string | null;
}

// RFC 4034 appendix A.1 and its successors.
const ALGORITHMS = {
  rsasha1: 5,
  'rsasha1-nsec3-sha1': 7,
  rsasha256: 8,
  rsasha512: 10,
  ecdsap256sha256: 13,
  ecdsap384sha384: 14,
  ed25519: 15,
  ed448: 16,
};
// RFC 7218.
const USAGES = { 'pkix-ta': 0, 'pkix-ee': 1, 'dane-ta': 2, 'dane-ee': 3, privcert: 255 };
const SELECTORS = { cert: 0, spki: 1, privsel: 255 };
const MATCHING = { full: 0, 'sha2-256': 1, 'sha2-512': 2, privmatch: 255 };
/** Bytes of a digest by the number of its type (RFC 4034 §5.1.3, RFC 4509, RFC 5933, RFC 6605). */
const DS_DIGEST_BYTES: Record<number, number> = { 1: 20, 2: 32, 3: 32, 4: 48 };
/** RFC 4255 §3.1.2, RFC 6594 §3.2. */
const FINGERPRINT_BYTES: Record<number, number> = { 1: 20, 2: 32 };
const TLSA_DIGEST_BYTES: Record<number, number> = { 1: 32, 2: 64 };

/** RFC 9460 §2.2. Names in lower case are as good as any others: its canonical form has them as they are (§2.5). */
const SERVICE_BINDING: readonly Field[] = [number('priority', 2), name('target'), serviceParameters];

const FORMATS = {
  LOC: { number: 29, fields: [location] },
  NAPTR: {
    number: 35,
    fields: [
      ...[number('order', 2), number('preference', 2), string('flags'), string('services')],
      ...[string('regular expression'), name('replacement')],
    ],
    mistake: naptrMistake,
  },
  DS: {
    number: 43,
    fields: [number('key tag', 2), number('algorithm', 1, ALGORITHMS), number('digest type', 1), hex('digest')],
    mistake: (data) => lengthMistake('digest', data.length - 4, DS_DIGEST_BYTES[data[3] as number]),
  },
  SSHFP: {
    number: 44,
    fields: [number('algorithm', 1), number('fingerprint type', 1), hex('fingerprint')],
    mistake: (data) => lengthMistake('fingerprint', data.length - 2, FINGERPRINT_BYTES[data[1] as number]),
  },
  TLSA: {
    number: 52,
    fields: [
      ...[number('certificate usage', 1, USAGES), number('selector', 1, SELECTORS)],
      ...[number('matching type', 1, MATCHING), hex('certificate association')],
    ],
    mistake: tlsaMistake,
  },
  SVCB: { number: 64, fields: SERVICE_BINDING, mistake: aliasMistake },
  HTTPS: { number: 65, fields: SERVICE_BINDING, mistake: aliasMistake },
} satisfies Record<string, RdataFormat>;

export type RdataType = keyof typeof FORMATS;

export const RDATA_TYPES = Object.keys(FORMATS) as RdataType[];

/** Numbers of the types in messages. */
export const RDATA_NUMBERS = Object.fromEntries(RDATA_TYPES.map((type) => [type, FORMATS[type].number])) as Record<
  RdataType,
  number
>;

/** Whether the value of the type is its whole RDATA. */
export function isRdataType(type: string): type is RdataType {
  return Object.hasOwn(FORMATS, type);
}

/**
 * RDATA of the tokens of a zone file.
 * @param hostOf the host name that a token stands for, without a final dot; `.` is the root, null no name
 * @throws InvalidRdata
 */
export function encodeRdata(type: RdataType, tokens: readonly Token[], hostOf: TokenReader['hostOf']): Buffer {
  const data = readFields(type, tokens, hostOf);
  formatRdata(type, data);
  return data;
}

/** The value that the tokens of a zone file have in the API. @param hostOf as of `encodeRdata` @throws InvalidRdata */
export function normalRdata(type: RdataType, tokens: readonly Token[], hostOf: TokenReader['hostOf']): string {
  return formatRdata(type, readFields(type, tokens, hostOf));
}

/** Most mistakes are found where the fields are written. */
function readFields(type: RdataType, tokens: readonly Token[], hostOf: TokenReader['hostOf']): Buffer {
  const format: RdataFormat = FORMATS[type];
  const reader: TokenReader = { tokens, at: 0, hostOf };
  const data = Buffer.concat(format.fields.map((field) => field.read(reader)));
  const surplus = tokens[reader.at];
  if (surplus) throw new InvalidRdata(`must end before ${shortenedToken(surplus.raw)}`);
  if (data.length > RDATA_BYTES_MAX) throw new InvalidRdata(`must have at most ${RDATA_BYTES_MAX} bytes`);
  return data;
}

const API: Style = { finalDot: '', keyMax: Infinity };
/** BIND 9.18, NSD 4.6 and ldns 1.8 know parameters up to `dohpath`, and miekg/dns takes known ones by name only. */
export const ZONE_FILE: Style = { finalDot: '.', keyMax: 7 };

/** The value of a record, as the API has it where no other style is wanted. @throws InvalidRdata */
export function formatRdata(type: RdataType, data: Buffer, style: Style = API): string {
  const format: RdataFormat = FORMATS[type];
  const bytes: Bytes = { data, at: 0, ...style };
  const text = format.fields.map((field) => field.write(bytes)).filter(Boolean);
  const message = format.mistake?.(data);
  if (message) throw new InvalidRdata(message);
  return text.join(' ');
}

/** The tokens of a value that is not a line of a zone file. @throws InvalidRdata */
export function tokenizeValue(value: string): Token[] {
  if (/\p{Cc}|\p{Surrogate}/u.test(value)) throw new InvalidRdata('must be without control characters');
  try {
    const [entry] = [...zoneFileEntries(value)];
    if (entry?.comment) throw new InvalidRdata('must have a semicolon in quotation marks only');
    return entry?.tokens ?? [];
  } catch (error) {
    if (error instanceof UnreadableZoneFile) throw new InvalidRdata('must have both ends of quotes and parentheses');
    throw error;
  }
}

function lengthMistake(what: string, bytes: number, expected: number | undefined): string | null {
  if (expected === undefined || bytes === expected) return null;
  return `must have a ${what} of ${expected} bytes for its type, which are ${expected * 2} digits, not ${bytes * 2}`;
}

/** RFC 6698 §2.1. */
function tlsaMistake(data: Buffer): string | null {
  const [usage, selector, matching] = data as unknown as [number, number, number];
  if (usage > 3 && usage < 255) return 'must have a certificate usage from 0 to 3';
  if (selector > 1 && selector < 255) return 'must have the selector 0 or 1';
  if (matching > 2 && matching < 255) return 'must have a matching type from 0 to 2';
  return lengthMistake('certificate association', data.length - 3, TLSA_DIGEST_BYTES[matching]);
}

/** Clients ignore parameters of the alias mode (RFC 9460 §2.4.2): whoever wrote them meant another priority. */
function aliasMistake(data: Buffer): string | null {
  if (data.readUInt16BE(0) !== 0) return null;
  let at = 2;
  while (data[at]) at += 1 + (data[at] as number);
  return at + 1 < data.length ? 'must be without parameters where its priority is 0, the mode of an alias' : null;
}

/**
 * RFC 3403 §4.1: `!pattern!replacement!`, with any delimiter but a digit, a backslash and the flag i. A replacement
 * beside it is wrong by the RFC, and common.
 */
function naptrMistake(data: Buffer): string | null {
  const strings: Buffer[] = [];
  let at = 4;
  for (let index = 0; index < 3; index += 1) {
    const length = data[at] as number;
    strings.push(data.subarray(at + 1, at + 1 + length));
    at += 1 + length;
  }
  const [flags, , expression] = strings.map((bytes) => bytes.toString('latin1')) as [string, string, string];
  if (!/^[a-z0-9]*$/i.test(flags)) return 'must have flags of letters and digits';
  if (expression === '') return null;
  return isSubstitution(expression)
    ? null
    : 'must have a regular expression such as "!^.*$!sip:info@example.com!", with three delimiters';
}

function isSubstitution(expression: string): boolean {
  const delimiter = expression[0] as string;
  if (/[0-9i\\]/.test(delimiter)) return false;
  const parts = [''];
  for (let at = 1; at < expression.length; at += 1) {
    const letter = expression[at] as string;
    if (letter === delimiter) parts.push('');
    else {
      const escaped = letter === '\\' ? (expression[(at += 1)] ?? '') : '';
      parts[parts.length - 1] += letter + escaped;
    }
  }
  const [pattern = '', replacement = '', flags] = parts;
  if (parts.length !== 3 || !/^i*$/.test(flags as string)) return false;
  const groups = pattern.replace(/\\./g, '').split('(').length - 1;
  return (
    pattern !== '' &&
    [...replacement.matchAll(/\\(\d)/g)].every(([, group]) => Number(group) <= groups && group !== '0')
  );
}
