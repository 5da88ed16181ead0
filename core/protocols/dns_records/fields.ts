// Fields of RDATA: read from the words of a zone file (RFC 1035 §5.1), and written from the bytes of a message.
import { quoteString } from '../text_strings';
import type { Token } from './tokens';

/** What is wrong with the value of a record; the message follows its name, as in “must have …”. */
export class RdataMistake extends Error {
  override readonly name = 'RdataMistake';
}

/** The length of RDATA has two bytes, and so has that of a parameter (RFC 1035 §3.2.1, RFC 9460 §2.2). */
export const RDATA_BYTES_MAX = 65_535;

/** The words of a value, taken one by one. */
export interface Words {
  tokens: readonly Token[];
  at: number;
  /** The host name that a word stands for, in lower case without a final dot; `.` is the root, null no name. */
  hostOf(word: string): string | null;
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
  /** @throws RdataMistake */
  read(words: Words): Buffer;
  /** @throws RdataMistake */
  write(bytes: Bytes): string;
}

export function takeWord(words: Words, what: string): Token {
  const token = words.tokens[words.at];
  if (!token) throw new RdataMistake(`lacks the ${what}`);
  words.at += 1;
  return token;
}

export function takeBytes(bytes: Bytes, length: number, what: string): Buffer {
  const taken = bytes.data.subarray(bytes.at, bytes.at + length);
  if (taken.length < length) throw new RdataMistake(`ends within the ${what}`);
  bytes.at += length;
  return taken;
}

/** @param mnemonics words that stand for numbers, in lower case */
export function number(what: string, length: 1 | 2, mnemonics: Record<string, number> = {}): Field {
  const max = 256 ** length - 1;
  return {
    read(words) {
      const { raw } = takeWord(words, what);
      const value = mnemonics[raw.toLowerCase()] ?? (/^\d{1,5}$/.test(raw) ? Number(raw) : NaN);
      if (!(value <= max)) throw new RdataMistake(`must have a ${what} from 0 to ${max}, not ${shortenedWord(raw)}`);
      const data = Buffer.alloc(length);
      data.writeUIntBE(value, 0, length);
      return data;
    },
    write: (bytes) => String(takeBytes(bytes, length, what).readUIntBE(0, length)),
  };
}

/** All words that are left, as hexadecimal digits. */
export function hex(what: string): Field {
  return {
    read(words) {
      const first = takeWord(words, what);
      const rest = words.tokens.slice(words.at);
      words.at = words.tokens.length;
      const digits = [first, ...rest].map(({ raw }) => raw).join('');
      if (!/^(?:[0-9a-f]{2})+$/i.test(digits))
        throw new RdataMistake(`must have a ${what} of hexadecimal digits, two for each byte`);
      return Buffer.from(digits, 'hex');
    },
    write(bytes) {
      const left = bytes.data.length - bytes.at;
      if (!left) throw new RdataMistake(`lacks the ${what}`);
      return takeBytes(bytes, left, what).toString('hex').toUpperCase();
    },
  };
}

const STRING_BYTES_MAX = 255;

/** A character-string (RFC 1035 §3.3). */
export function string(what: string): Field {
  return {
    read(words) {
      const { bytes } = takeWord(words, what);
      if (bytes.length > STRING_BYTES_MAX)
        throw new RdataMistake(`must have ${what} of at most ${STRING_BYTES_MAX} bytes`);
      return Buffer.concat([Buffer.from([bytes.length]), bytes]);
    },
    write(bytes) {
      const length = takeBytes(bytes, 1, what)[0] as number;
      return quoteString(takeBytes(bytes, length, what));
    },
  };
}

/** No other labels can be written in the API. */
const LABEL = /^[a-z0-9_/-]{1,63}$/;
const NAME_CHARACTERS_MAX = 253;

/** A domain name, never compressed (RFC 3597 §4) and in lower case, as in the canonical form (RFC 4034 §6.2). */
export function name(what: string): Field {
  return {
    read(words) {
      const { raw } = takeWord(words, what);
      const host = words.hostOf(raw);
      const labels = host === '.' ? [] : host?.split('.');
      if (!labels?.every((label) => LABEL.test(label)) || (host as string).length > NAME_CHARACTERS_MAX)
        throw new RdataMistake(`must have a host name or a dot as its ${what}, not ${shortenedWord(raw)}`);
      const parts = labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]);
      return Buffer.concat([...parts, Buffer.from([0])]);
    },
    write(bytes) {
      const labels: string[] = [];
      for (;;) {
        const length = takeBytes(bytes, 1, what)[0] as number;
        if (length === 0) break;
        const label = takeBytes(bytes, length, what).toString('latin1').toLowerCase();
        if (!LABEL.test(label)) throw new RdataMistake(`must have a host name or a dot as its ${what}`);
        labels.push(label);
      }
      return labels.length ? `${labels.join('.')}${bytes.finalDot}` : '.';
    },
  };
}

const SHOWN_CHARACTERS = 40;

/** A word of the value for a message. */
export function shortenedWord(word: string): string {
  return word.length > SHOWN_CHARACTERS ? `${word.slice(0, SHOWN_CHARACTERS)}…` : word;
}
