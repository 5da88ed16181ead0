// Fields of RDATA: read from the tokens of a zone file (RFC 1035 §5.1), and written from the bytes of a message.
import { quoteString } from '../text_strings';
import type { Token } from './tokens';

/** What is wrong with the value of a record; the message follows its name, as in “must have …”. */
export class InvalidRdata extends Error {
  override readonly name = 'InvalidRdata';
}

/** The length of RDATA has two bytes, and so has that of a parameter (RFC 1035 §3.2.1, RFC 9460 §2.2). */
export const RDATA_BYTES_MAX = 65_535;

/** The tokens of a value, read one after the other. */
export interface TokenReader {
  tokens: readonly Token[];
  at: number;
  /** The host name that a token stands for, in lower case without a final dot; `.` is the root, null no name. */
  hostOf(name: string): string | null;
}

/** How a value is written. */
export interface Style {
  /** What follows a name: a dot in zone files, nothing in the API. */
  finalDot: '.' | '';
  /** The last parameter of a service that is written by its name; later ones by number. */
  keyMax: number;
}

/** The bytes of a value, read one field after the other. */
export interface Bytes extends Style {
  data: Buffer;
  at: number;
}

export interface Field {
  /** @throws InvalidRdata */
  read(reader: TokenReader): Buffer;
  /** @throws InvalidRdata */
  write(bytes: Bytes): string;
}

/** @throws InvalidRdata where no token is left; `what`: the field, for the message */
export function readToken(reader: TokenReader, what: string): Token {
  const token = reader.tokens[reader.at];
  if (!token) throw new InvalidRdata(`lacks the ${what}`);
  reader.at += 1;
  return token;
}

/** @throws InvalidRdata where fewer bytes are left; `what`: the field, for the message */
export function readBytes(bytes: Bytes, length: number, what: string): Buffer {
  const taken = bytes.data.subarray(bytes.at, bytes.at + length);
  if (taken.length < length) throw new InvalidRdata(`ends within the ${what}`);
  bytes.at += length;
  return taken;
}

/** @param mnemonics names that stand for numbers, in lower case */
export function number(what: string, length: 1 | 2, mnemonics: Record<string, number> = {}): Field {
  const max = 256 ** length - 1;
  return {
    read(reader) {
      const { raw } = readToken(reader, what);
      const value = mnemonics[raw.toLowerCase()] ?? (/^\d{1,5}$/.test(raw) ? Number(raw) : NaN);
      if (!(value <= max)) throw new InvalidRdata(`must have a ${what} from 0 to ${max}, not ${shortenedToken(raw)}`);
      const data = Buffer.alloc(length);
      data.writeUIntBE(value, 0, length);
      return data;
    },
    write: (bytes) => String(readBytes(bytes, length, what).readUIntBE(0, length)),
  };
}

/** All tokens that are left, as hexadecimal digits. */
export function hex(what: string): Field {
  return {
    read(reader) {
      const first = readToken(reader, what);
      const rest = reader.tokens.slice(reader.at);
      reader.at = reader.tokens.length;
      const digits = [first, ...rest].map(({ raw }) => raw).join('');
      if (!/^(?:[0-9a-f]{2})+$/i.test(digits))
        throw new InvalidRdata(`must have a ${what} of hexadecimal digits, two for each byte`);
      return Buffer.from(digits, 'hex');
    },
    write(bytes) {
      const left = bytes.data.length - bytes.at;
      if (!left) throw new InvalidRdata(`lacks the ${what}`);
      return readBytes(bytes, left, what).toString('hex').toUpperCase();
    },
  };
}

const STRING_BYTES_MAX = 255;

/** A character-string (RFC 1035 §3.3). */
export function string(what: string): Field {
  return {
    read(reader) {
      const { bytes } = readToken(reader, what);
      if (bytes.length > STRING_BYTES_MAX)
        throw new InvalidRdata(`must have ${what} of at most ${STRING_BYTES_MAX} bytes`);
      return Buffer.concat([Buffer.from([bytes.length]), bytes]);
    },
    write(bytes) {
      const length = readBytes(bytes, 1, what)[0] as number;
      return quoteString(readBytes(bytes, length, what));
    },
  };
}

/** No other labels can be written in the API. */
const LABEL = /^[a-z0-9_/-]{1,63}$/;
const NAME_CHARACTERS_MAX = 253;

/** A domain name, never compressed (RFC 3597 §4) and in lower case, as in the canonical form (RFC 4034 §6.2). */
export function name(what: string): Field {
  return {
    read(reader) {
      const { raw } = readToken(reader, what);
      const host = reader.hostOf(raw);
      const labels = host === '.' ? [] : host?.split('.');
      if (!labels?.every((label) => LABEL.test(label)) || (host as string).length > NAME_CHARACTERS_MAX)
        throw new InvalidRdata(`must have a host name or a dot as its ${what}, not ${shortenedToken(raw)}`);
      const parts = labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]);
      return Buffer.concat([...parts, Buffer.from([0])]);
    },
    write(bytes) {
      const labels: string[] = [];
      for (;;) {
        const length = readBytes(bytes, 1, what)[0] as number;
        if (length === 0) break;
        const label = readBytes(bytes, length, what).toString('latin1').toLowerCase();
        if (!LABEL.test(label)) throw new InvalidRdata(`must have a host name or a dot as its ${what}`);
        labels.push(label);
      }
      return labels.length ? `${labels.join('.')}${bytes.finalDot}` : '.';
    },
  };
}

const SHOWN_CHARACTERS = 40;

/** A token of the value, for a message. */
export function shortenedToken(token: string): string {
  return token.length > SHOWN_CHARACTERS ? `${token.slice(0, SHOWN_CHARACTERS)}…` : token;
}
