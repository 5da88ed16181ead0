// Cache directives of responses: Cache-Control (RFC 9111 §5.2) and CDN-Cache-Control (RFC 9213).
import { parseDictionary } from 'structured-headers';

/** Names in lower case. Values in seconds are whole numbers of at most SECONDS_MAX. */
export type Directives = Map<string, string>;

const SECONDS_MAX = 2 ** 31;
const WITH_SECONDS = new Set(['max-age', 's-maxage', 'stale-while-revalidate', 'stale-if-error']);
/** Directives evaluated here; all others are withheld from http-cache-semantics. */
const WITHOUT_VALUE = new Set(['no-store', 'no-cache', 'private', 'public', 'must-revalidate', 'proxy-revalidate']);
const QUOTED = /"(?:[^"\\]|\\.)*"/g;
/** The structured-field parser returns the same number for `60` and `60.0`, but only `60` is an integer. */
const DECIMAL = new RegExp(`(?:^|[\\s,])(?:${[...WITH_SECONDS].join('|')})=-?\\d+\\.`);

/**
 * Parses Cache-Control leniently. Of repeated seconds the smallest value counts; an invalid number is 0, so that the
 * response is stale at once (RFC 9111 §4.2.1); a restriction counts wherever it appears.
 */
export function parseCacheControl(text: string | undefined): Directives {
  const directives: Directives = new Map();
  const parts = (text ?? '').match(/[^\s,;=]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s,;]*))?/g) ?? [];
  for (const part of parts) {
    const at = part.includes('=') ? part.indexOf('=') : part.length;
    const [name, value] = [part.slice(0, at), part.slice(at + 1)].map((word) => word.trim().replaceAll('"', ''));
    const key = String(name).toLowerCase();
    const clean = WITH_SECONDS.has(key) ? leastSeconds(directives.get(key), parseSeconds(value)) : String(value);
    directives.set(key, clean);
  }
  return directives;
}

function leastSeconds(known: string | undefined, value: number): string {
  return String(known === undefined ? value : Math.min(Number(known), value));
}

/**
 * Parses CDN-Cache-Control, a dictionary of structured fields. Null where the field is absent, empty, not a dictionary,
 * or has seconds that are not whole numbers: Cache-Control counts then (RFC 9213 §2.1).
 */
export function parseTargeted(text: string | undefined): Directives | null {
  if (!text || DECIMAL.test(text.replace(QUOTED, '""'))) return null;
  const directives: Directives = new Map();
  for (const [name, [value]] of dictionaryOf(text)) {
    if (!WITH_SECONDS.has(name)) {
      // `public=?0` grants nothing; a restriction counts whatever its value.
      if (value !== false || name !== 'public') directives.set(name, '');
      continue;
    }
    if (typeof value !== 'number' || value < 0) return null;
    directives.set(name, String(Math.min(value, SECONDS_MAX)));
  }
  return directives.size ? directives : null;
}

function dictionaryOf(text: string): ReturnType<typeof parseDictionary> {
  try {
    return parseDictionary(text);
  } catch {
    return new Map();
  }
}

/** Known directives only: the value of an unknown directive could be mistaken for another one. */
export function formatDirectives(directives: Directives): string {
  return [...directives]
    .filter(([name]) => WITHOUT_VALUE.has(name) || WITH_SECONDS.has(name))
    .map(([name, value]) => (WITH_SECONDS.has(name) ? `${name}=${value}` : name))
    .join(', ');
}

/** 0 where the directive is absent. */
export function secondsOf(directives: Directives, name: string): number {
  return Number(directives.get(name) ?? 0);
}

/** Values that are too large count as the maximum (RFC 9111 §1.2.2), invalid ones as 0. */
function parseSeconds(value: string | undefined): number {
  return /^\d+$/.test(value ?? '') ? Math.min(Number(value), SECONDS_MAX) : 0;
}

/** Age in seconds: the first member of a list; 0 where that is not a whole number (RFC 9111 §5.1). */
export function parseAge(text: string | undefined): number {
  return parseSeconds(text?.split(',', 1)[0]?.trim());
}
