// Records as zone files have them (RFC 1035 §5.1), also those of types whose numbers are fields in the API.
import ipaddr from 'ipaddr.js';
import { quoteString, textStrings } from '../text_strings';
import { name, number, InvalidRdata, string, readBytes, type Bytes, type Field } from './fields';
import { encodeRdata, formatRdata, isRdataType, tokenizeValue, ZONE_FILE, type RdataType } from './rdata';
import type { Token } from './tokens';

/** What of a record its value in a zone file is made of; names as in the API. */
interface RecordData {
  type: string;
  value: string;
  priority?: number | null;
  weight?: number | null;
  port?: number | null;
  flags?: number | null;
  tag?: string | null;
}

/** The value with its numbers, names with a final dot. */
export function presentationOf(record: RecordData, style = ZONE_FILE): string {
  const { type, value, priority, weight, port, flags, tag } = record;
  if (type === 'A' || type === 'AAAA') return value;
  if (type === 'TXT') return textStrings(value).map(quoteString).join(' ');
  if (type === 'CAA') return `${flags} ${tag} ${quoteString(Buffer.from(value))}`;
  if (isRdataType(type)) return formatRdata(type, rdataOfValue(type, value), style);
  const host = value === '.' ? '.' : `${value}.`;
  if (type === 'MX') return `${priority} ${host}`;
  if (type === 'SRV') return `${priority} ${weight} ${port} ${host}`;
  return host;
}

/** RDATA of a value that the API has taken. @throws InvalidRdata for others */
export function rdataOfValue(type: RdataType, value: string): Buffer {
  return encodeRdata(type, tokenizeValue(value), absoluteHostOf);
}

/** A name that is absolute, with or without its final dot. */
export function absoluteHostOf(word: string): string {
  return word.length > 1 ? word.toLowerCase().replace(/\.$/, '') : word;
}

const HOST = [name('host name')];
const FIELDS: Record<string, readonly Written[]> = {
  ...{ A: [address(4)], AAAA: [address(16)], NS: HOST, CNAME: HOST, PTR: HOST },
  MX: [number('priority', 2), ...HOST],
  SRV: [number('priority', 2), number('weight', 2), number('port', 2), ...HOST],
  TXT: [strings()],
  CAA: [number('flags', 1), tag(), rest()],
};

/**
 * The tokens of a value in the form of unknown types, `\# 4 c0000201` (RFC 3597 §5).
 * @returns null where the value has another form @throws InvalidRdata
 */
export function unknownFormTokens(type: string, tokens: readonly Token[]): Token[] | null {
  const [mark, length, ...rest] = tokens;
  if (mark?.raw !== '\\#' || mark.isQuoted) return null;
  const digits = rest.map(({ raw }) => raw).join('');
  const data = Buffer.from(digits, 'hex');
  if (!/^(?:[0-9a-f]{2})*$/i.test(digits) || String(data.length) !== length?.raw)
    throw new InvalidRdata('must have as many bytes after \\# as its length says, two hexadecimal digits for each');
  return tokenizeValue(textOfRdata(type, data));
}

function textOfRdata(type: string, data: Buffer): string {
  if (isRdataType(type)) return formatRdata(type, data, ZONE_FILE);
  const bytes: Bytes = { data, at: 0, ...ZONE_FILE };
  const text = (FIELDS[type] ?? []).map((field) => field.write(bytes)).join(' ');
  if (bytes.at < data.length) throw new InvalidRdata('must end after its last field');
  return text;
}

type Written = Pick<Field, 'write'>;

function address(length: 4 | 16): Written {
  return { write: (bytes) => ipaddr.fromByteArray([...readBytes(bytes, length, 'address')]).toString() };
}

function strings(): Written {
  const one = string('text');
  return {
    write(bytes) {
      const found: string[] = [];
      while (!found.length || bytes.at < bytes.data.length) found.push(one.write(bytes));
      return found.join(' ');
    },
  };
}

function tag(): Written {
  const one = string('tag');
  return { write: (bytes) => one.write(bytes).slice(1, -1) };
}

function rest(): Written {
  return { write: (bytes) => quoteString(readBytes(bytes, bytes.data.length - bytes.at, 'value')) };
}
