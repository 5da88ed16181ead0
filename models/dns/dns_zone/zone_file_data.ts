// The data of a line of a zone file as the fields of a record.
import { unknownFormTokens } from '../../../core/protocols/dns_records/presentation';
import { isRdataType, normalRdata, InvalidRdata, type RdataType } from '../../../core/protocols/dns_records/rdata';
import type { Token } from '../../../core/protocols/dns_records/tokens';
import { asciiNameOf } from '../../../core/protocols/domain_names';
import { valueOfStrings } from '../../../core/protocols/text_strings';
import type { DnsCaaTag, DnsType } from '../../../schema/types';
import { hostOrRoot, type RecordFields } from '../dns_record/rules';

type Data = Omit<RecordFields, 'name'>;

/** @returns an error message where the data do not fit the type */
export function readData(type: DnsType, tokens: Token[], origin: string): Data | string {
  try {
    const plain = unknownFormTokens(type, tokens) ?? tokens;
    return isRdataType(type)
      ? { ...NONE, type, value: readRdata(type, plain, origin) }
      : readPlain(type, plain, origin);
  } catch (error) {
    if (error instanceof InvalidRdata) return `The value of the ${type} record ${error.message}.`;
    throw error;
  }
}

function readRdata(type: RdataType, tokens: Token[], origin: string): string {
  return normalRdata(type, tokens, (word) => hostOrRoot(absolute(word, origin) || '.'));
}

function readText(tokens: Token[]): Data {
  return { ...NONE, type: 'TXT', value: valueOfStrings(tokens.map(({ bytes }) => bytes)) };
}

const NONE = { ttl: null, priority: null, weight: null, port: null, flags: null, tag: null, comment: null };

function readPlain(type: DnsType, tokens: Token[], origin: string): Data | string {
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
export function absolute(name: string, origin: string): string {
  if (name === '@') return origin;
  if (name === '.') return '';
  // Some programs write `*` as \052, in octal. By RFC 1035 §5.1 that is decimal 52, the digit 4, which needs no escape.
  // Exports of GoDaddy have names such as `_sip._tls.@`.
  const text = (name.endsWith('.@') ? name.slice(0, -2) : name)
    .replace(/^\\052(?=\.|$)/, '*')
    .replace(/\\(?:(\d{3})|([^]))/g, (escape: string, code?: string, letter?: string) => {
      const meant = code === undefined ? (letter as string) : String.fromCharCode(Number(code));
      return meant === '.' ? escape : meant;
    });
  const lower = asciiNameOf(text) ?? text.toLowerCase();
  if (lower.endsWith('.') && !lower.endsWith('\\.')) return lower.slice(0, -1);
  return origin ? `${lower}.${origin}` : lower;
}
