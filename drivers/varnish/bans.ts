// Purges as bans of Varnish: expressions over objects, which apply to all requests after their insertion.
import type { PurgeSpec } from '../../engines/cdn/cdn';
import { FIELD } from './fields';

/** Varnish accepts commands of up to 8 KB. A longer value is truncated: all values with that prefix are purged. */
const EXPRESSION_LENGTH_MAX = 1_500;

/** Arguments of the `ban` commands that are needed. */
export function bansOf(zoneId: string, { type, values }: PurgeSpec): string[][] {
  const ofZone = [`obj.http.${FIELD.zone}`, '==', zoneId];
  if (type === 'all') return [ofZone];
  const field = type === 'tags' ? FIELD.tags : FIELD.key;
  return inBatches(values.map((value) => alternativeOf(type, value))).map((batch) => {
    const any = `(?:${batch.join('|')})`;
    return [...ofZone, '&&', `obj.http.${field}`, '~', type === 'tags' ? `(?:^|,)${any}(?:,|$)` : `^${any}`];
  });
}

/** A path without a query string matches it with any query string. */
function alternativeOf(type: PurgeSpec['type'], value: string): string {
  const text = escape(value.slice(0, EXPRESSION_LENGTH_MAX / 4));
  if (type !== 'urls') return text;
  if (value.length > EXPRESSION_LENGTH_MAX / 4) return text;
  return value.includes('?') ? `${text}$` : `${text}(?:[?]|$)`;
}

function inBatches(alternatives: string[]): string[][] {
  const batches: string[][] = [];
  let length = EXPRESSION_LENGTH_MAX;
  for (const one of alternatives) {
    if (length + one.length > EXPRESSION_LENGTH_MAX) {
      batches.push([]);
      length = 0;
    }
    batches.at(-1)?.push(one);
    length += one.length + 1;
  }
  return batches;
}

/** Avoids backslashes, which the management port does not accept. Other characters are matched by `.`. */
function escape(text: string): string {
  return text.replace(/[^\w/-]/g, (one) => (/[!-~]/.test(one) && !/["\\^\]]/.test(one) ? `[${one}]` : '.'));
}
