// Record types and their numbers in messages.
import { RDATA_NUMBERS } from './rdata';

/** Types that are on the wire as they are in the API: all but ALIAS. */
export const TYPE_NUMBERS = {
  A: 1,
  NS: 2,
  CNAME: 5,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  CAA: 257,
  ...RDATA_NUMBERS,
} as const;

export type ServedType = keyof typeof TYPE_NUMBERS;

export const SERVED_TYPES = Object.keys(TYPE_NUMBERS) as ServedType[];

const TYPES = new Map<number, ServedType>(SERVED_TYPES.map((type) => [TYPE_NUMBERS[type], type]));

/** `TYPE65` by its name, HTTPS; unchanged where it has none (RFC 3597 §5). */
export function typeOfWord(word: string): string {
  const upper = word.toUpperCase();
  const [, digits] = /^TYPE(\d{1,5})$/.exec(upper) ?? [];
  return TYPES.get(Number(digits ?? NaN)) ?? upper;
}
