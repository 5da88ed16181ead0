// Parameters of SVCB and HTTPS (RFC 9460): `key=value` words in any order, bytes in the order of their numbers.
import ipaddr from 'ipaddr.js';
import { isIPv4, isIPv6 } from 'node:net';
import { quoteString } from '../text_strings';
import { RDATA_BYTES_MAX, InvalidRdata, shortenedToken, type Bytes, type Field, type TokenReader } from './fields';
import type { Token } from './tokens';

interface Parameter {
  number: number;
  read(value: Buffer): Buffer;
  write(data: Buffer): Buffer;
}

const MANDATORY = 0;
const ALPN = 1;
const NO_DEFAULT_ALPN = 2;
/** Reserved as invalid (RFC 9460 §14.3.2). */
const KEY_MAX = 65_534;

const PARAMETERS: Record<string, Parameter> = {
  mandatory: { number: MANDATORY, read: readMandatory, write: writeMandatory },
  alpn: { number: ALPN, read: readProtocols, write: writeProtocols },
  'no-default-alpn': { number: NO_DEFAULT_ALPN, read: readNothing, write: writeNothing },
  port: { number: 3, read: readPort, write: writePort },
  ipv4hint: { number: 4, ...addresses(isIPv4, 4) },
  ech: { number: 5, read: readBase64, write: (data) => Buffer.from(data.toString('base64')) },
  ipv6hint: { number: 6, ...addresses((text) => isIPv6(text) && !text.includes('%'), 16) },
  // RFC 9461 §5.
  dohpath: { number: 7, read: readPath, write: readPath },
  // RFC 9540 §4.
  ohttp: { number: 8, read: readNothing, write: writeNothing },
};
const NAMES = new Map(Object.entries(PARAMETERS).map(([key, { number }]) => [number, key]));

export const serviceParameters: Field = {
  read(reader) {
    const found = new Map<number, Buffer>();
    while (reader.at < reader.tokens.length) {
      const { key, value } = takeParameter(reader);
      const number = numberOfKey(key);
      if (found.has(number)) throw new InvalidRdata(`must have the parameter ${key} once`);
      const known = PARAMETERS[key];
      const data = known ? named(key, () => known.read(value)) : value;
      if (data.length > RDATA_BYTES_MAX)
        throw new InvalidRdata(`must have the parameter ${key} with at most ${RDATA_BYTES_MAX} bytes`);
      found.set(number, data);
    }
    const ordered = [...found].sort(([a], [b]) => a - b);
    return Buffer.concat(
      ordered.flatMap(([number, value]) => {
        const head = Buffer.alloc(4);
        head.writeUInt16BE(number, 0);
        head.writeUInt16BE(value.length, 2);
        return [head, value];
      }),
    );
  },
  write(bytes) {
    const parameters = parametersIn(bytes);
    requireComplete(parameters);
    return parameters.map(([number, data]) => writeParameter(number, data, bytes.keyMax)).join(' ');
  },
};

/** `key`, `key=value` or `key="value"`, of which the last one is two tokens. */
function takeParameter(reader: TokenReader): { key: string; value: Buffer } {
  const { bytes, isQuoted } = reader.tokens[reader.at] as Token;
  reader.at += 1;
  const equals = isQuoted ? -1 : bytes.indexOf('=');
  const key = bytes.toString('latin1', 0, equals < 0 ? undefined : equals).toLowerCase();
  if (isQuoted || !/^[a-z0-9-]+$/.test(key))
    throw new InvalidRdata(`must have parameters such as alpn=h2, not ${shortenedToken(bytes.toString())}`);
  const next = reader.tokens[reader.at];
  const isOpen = equals === bytes.length - 1;
  if (next?.isAdjoining && !(isOpen && next.isQuoted))
    throw new InvalidRdata(`must have a space after the parameter ${shortenedToken(key)}`);
  if (!next?.isAdjoining) return { key, value: equals < 0 ? Buffer.alloc(0) : bytes.subarray(equals + 1) };
  reader.at += 1;
  if (reader.tokens[reader.at]?.isAdjoining) throw new InvalidRdata(`must have a space after the parameter ${key}`);
  return { key, value: next.bytes };
}

function numberOfKey(key: string): number {
  const known = PARAMETERS[key]?.number;
  if (known !== undefined) return known;
  const [, digits] = /^key(0|[1-9]\d{0,4})$/.exec(key) ?? [];
  if (digits === undefined || Number(digits) > KEY_MAX)
    throw new InvalidRdata(`must have known parameters, or key0 to key${KEY_MAX}, not ${shortenedToken(key)}`);
  return Number(digits);
}

function parametersIn({ data, at }: Bytes): [number, Buffer][] {
  const found: [number, Buffer][] = [];
  let position = at;
  while (position < data.length) {
    if (position + 4 > data.length) throw new InvalidRdata('ends within a parameter');
    const [number, length] = [data.readUInt16BE(position), data.readUInt16BE(position + 2)];
    position += 4;
    if (position + length > data.length) throw new InvalidRdata('ends within a parameter');
    if (number <= (found.at(-1)?.[0] ?? -1)) throw new InvalidRdata('must have its parameters in order');
    found.push([number, data.subarray(position, position + length)]);
    position += length;
  }
  return found;
}

/** RFC 9460 §7.1.1 and §8. */
function requireComplete(parameters: readonly [number, Buffer][]): void {
  const present = new Map(parameters);
  if (present.has(NO_DEFAULT_ALPN) && !present.has(ALPN))
    throw new InvalidRdata('must have alpn where it has no-default-alpn');
  const mandatory = present.get(MANDATORY) ?? Buffer.alloc(0);
  for (let at = 0; at + 1 < mandatory.length; at += 2) {
    const number = mandatory.readUInt16BE(at);
    if (!present.has(number)) throw new InvalidRdata(`must have the parameter ${keyOf(number)}, which is mandatory`);
  }
}

function keyOf(number: number): string {
  return NAMES.get(number) ?? `key${number}`;
}

/** Without quotation marks where no character needs them. */
function writeParameter(number: number, data: Buffer, keyMax: number): string {
  const known = PARAMETERS[keyOf(number)];
  const text = known ? named(keyOf(number), () => known.write(data)) : data;
  const isByNumber = number > keyMax;
  const [key, value] = isByNumber ? [`key${number}`, data] : [keyOf(number), text];
  // PowerDNS needs the quotation marks.
  if (!value.length) return isByNumber || !known ? `${key}=""` : key;
  const isPlain = /^[!#-'*-:<-[\]-~]+$/.test(value.toString('latin1'));
  return `${key}=${isPlain ? value.toString('latin1') : quoteString(value)}`;
}

/** The parameter before the message. */
function named<T>(key: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof InvalidRdata ? new InvalidRdata(`must have the parameter ${key} ${error.message}`) : error;
  }
}

/** Items between commas. A backslash takes the meaning from a comma and from itself (RFC 9460, appendix A.1). */
function itemsOf(value: Buffer): Buffer[] {
  const items: number[][] = [[]];
  for (let at = 0; at < value.length; at += 1) {
    const byte = value[at] as number;
    if (byte === 0x2c) items.push([]);
    else {
      if (byte === 0x5c) at += 1;
      const meant = value[at];
      if (meant === undefined || (byte === 0x5c && meant !== 0x5c && meant !== 0x2c))
        throw new InvalidRdata('with a comma or a backslash after each backslash');
      items.at(-1)?.push(meant);
    }
  }
  if (items.some((item) => !item.length)) throw new InvalidRdata('with a value, and none that is empty in a list');
  return items.map((item) => Buffer.from(item));
}

function readProtocols(value: Buffer): Buffer {
  const items = itemsOf(value);
  if (items.some(({ length }) => length > 255)) throw new InvalidRdata('with protocols of at most 255 bytes');
  return Buffer.concat(items.flatMap((item) => [Buffer.from([item.length]), item]));
}

function writeProtocols(data: Buffer): Buffer {
  const items: string[] = [];
  for (let at = 0; at < data.length; at += 1 + (data[at] as number)) {
    const item = data.toString('latin1', at + 1, at + 1 + (data[at] as number));
    if (!item || item.length < (data[at] as number)) throw new InvalidRdata('with protocols that are not empty');
    items.push(item.replace(/[\\,]/g, '\\$&'));
  }
  if (!items.length) throw new InvalidRdata('with at least one protocol');
  return Buffer.from(items.join(','), 'latin1');
}

function readMandatory(value: Buffer): Buffer {
  const numbers = itemsOf(value).map((item) => numberOfKey(item.toString('latin1').toLowerCase()));
  const ordered = [...new Set(numbers)].sort((a, b) => a - b);
  if (ordered.length < numbers.length || ordered.includes(MANDATORY))
    throw new InvalidRdata('with each key once, and not itself');
  const data = Buffer.alloc(ordered.length * 2);
  ordered.forEach((number, index) => data.writeUInt16BE(number, index * 2));
  return data;
}

function writeMandatory(data: Buffer): Buffer {
  if (!data.length || data.length % 2) throw new InvalidRdata('with a list of keys');
  const numbers = Array.from({ length: data.length / 2 }, (_, index) => data.readUInt16BE(index * 2));
  if (numbers.some((number, index) => number <= (numbers[index - 1] ?? MANDATORY)))
    throw new InvalidRdata('with each key once, in order, and not itself');
  return Buffer.from(numbers.map(keyOf).join(','));
}

function readNothing(value: Buffer): Buffer {
  if (value.length) throw new InvalidRdata('without a value');
  return value;
}

function writeNothing(data: Buffer): Buffer {
  return readNothing(data);
}

function readPort(value: Buffer): Buffer {
  const port = /^\d{1,5}$/.test(value.toString('latin1')) ? Number(value.toString('latin1')) : NaN;
  if (!(port <= 65_535)) throw new InvalidRdata('from 0 to 65535');
  return Buffer.from([port >> 8, port & 0xff]);
}

function writePort(data: Buffer): Buffer {
  if (data.length !== 2) throw new InvalidRdata('of two bytes');
  return Buffer.from(String(data.readUInt16BE(0)));
}

function addresses(isAddress: (text: string) => boolean, bytes: 4 | 16): Pick<Parameter, 'read' | 'write'> {
  const kind = bytes === 4 ? 'IPv4' : 'IPv6';
  return {
    read(value) {
      const texts = value.toString('latin1').split(',');
      if (!texts.every(isAddress)) throw new InvalidRdata(`with ${kind} addresses, separated by commas`);
      return Buffer.concat(texts.map((text) => Buffer.from(ipaddr.parse(text).toByteArray())));
    },
    write(data) {
      if (!data.length || data.length % bytes) throw new InvalidRdata(`with ${kind} addresses`);
      const count = data.length / bytes;
      const parts = Array.from({ length: count }, (_, index) => data.subarray(index * bytes, (index + 1) * bytes));
      return Buffer.from(parts.map((part) => ipaddr.fromByteArray([...part]).toString()).join(','));
    },
  };
}

function readBase64(value: Buffer): Buffer {
  const text = value.toString('latin1');
  const data = Buffer.from(text, 'base64');
  if (!data.length || data.toString('base64') !== text) throw new InvalidRdata('in base64');
  return data;
}

/** A relative URI template in UTF-8 with the variable `dns`. */
function readPath(value: Buffer): Buffer {
  const text = value.toString();
  if (!Buffer.from(text).equals(value) || !text.startsWith('/') || !hasVariable(text, 'dns'))
    throw new InvalidRdata('with a path that has the variable dns, such as /dns-query{?dns}');
  return value;
}

/** Whether an expression in braces names the variable (RFC 6570 §2.2). */
function hasVariable(template: string, name: string): boolean {
  return template
    .split('}')
    .slice(0, -1)
    .some((part) => {
      const [, ...opened] = part.split('{');
      return opened.join('{').split(/\W+/).includes(name);
    });
}
