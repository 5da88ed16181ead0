// Which transactions a reader has seen, in PostgreSQL's notation (pg_snapshot, `xmin:xmax:xip,…`): all below xmin, and
// those below xmax that were not in progress. Numbers of transactions have 64 bits.

/** Nothing was seen. */
export const EMPTY_SNAPSHOT = '1:1:';

/** What a reader of arriving rows has got: all of `seen`, and of what came up to `until` the rows up to (tx, seq). */
export interface ReadPosition {
  seen: string;
  partly: { until: string; tx: string; seq: string } | null;
}

export function formatReadPosition({ seen, partly }: ReadPosition): string {
  return partly ? `${seen}|${partly.until}|${partly.tx}.${partly.seq}` : seen;
}

/** Null for a text that is not a position. */
export function parseReadPosition(text: string): ReadPosition | null {
  const [seen = '', until, row, ...rest] = text.split('|');
  if (rest.length || !isSnapshot(seen)) return null;
  if (until === undefined) return { seen, partly: null };
  const [, tx, seq] = /^(\d{1,18})\.(\d{1,18})$/.exec(row ?? '') ?? [];
  return isSnapshot(until) && tx !== undefined && seq !== undefined ? { seen, partly: { until, tx, seq } } : null;
}

/** The rules of PostgreSQL, which refuses others with an error: 0 < xmin <= xmax, xips between them in their order. */
function isSnapshot(text: string): boolean {
  const [, low, high, list = ''] = /^(\d{1,18}):(\d{1,18}):((?:\d{1,18}(?:,\d{1,18})*)?)$/.exec(text) ?? [];
  if (low === undefined || high === undefined) return false;
  const [xmin, xmax] = [BigInt(low), BigInt(high)];
  const open = list === '' ? [] : list.split(',').map(BigInt);
  return xmin > 0n && xmin <= xmax && open.every((xip, index) => xip >= (open[index - 1] ?? xmin) && xip < xmax);
}

/** The snapshot with everything below a transaction taken as seen. */
export function raiseSnapshot(snapshot: string, floor: bigint): string {
  const [low = '1', high = '1', list = ''] = snapshot.split(':');
  if (BigInt(low) >= floor) return snapshot;
  const xmin = floor < BigInt(high) ? floor : BigInt(high);
  const open = list === '' ? [] : list.split(',').filter((xip) => BigInt(xip) >= xmin);
  return `${open[0] ?? xmin}:${high}:${open.join(',')}`;
}
