// Snapshots of transactions visible to a reader, in PostgreSQL's notation (pg_snapshot, `xmin:xmax:xip,…`): all below
// xmin, and those below xmax that were not in progress. Transaction ids have 64 bits.

/** No transaction is visible. */
export const EMPTY_SNAPSHOT = '1:1:';

/** Position of a reader of new rows: all rows of `seen`, and rows of `until` up to (tx, seq). */
export interface ReadPosition {
  seen: string;
  partly: { until: string; tx: string; seq: string } | null;
}

export function formatReadPosition({ seen, partly }: ReadPosition): string {
  return partly ? `${seen}|${partly.until}|${partly.tx}.${partly.seq}` : seen;
}

/** Null for an invalid position. */
export function parseReadPosition(text: string): ReadPosition | null {
  const [seen = '', until, row, ...rest] = text.split('|');
  if (rest.length || !isSnapshot(seen)) return null;
  if (until === undefined) return { seen, partly: null };
  const [, tx, seq] = /^(\d{1,18})\.(\d{1,18})$/.exec(row ?? '') ?? [];
  return isSnapshot(until) && tx !== undefined && seq !== undefined ? { seen, partly: { until, tx, seq } } : null;
}

/** PostgreSQL's rules, whose violation is an error: 0 < xmin <= xmax, xips between them in ascending order. */
function isSnapshot(text: string): boolean {
  const [, low, high, list = ''] = /^(\d{1,18}):(\d{1,18}):((?:\d{1,18}(?:,\d{1,18})*)?)$/.exec(text) ?? [];
  if (low === undefined || high === undefined) return false;
  const [xmin, xmax] = [BigInt(low), BigInt(high)];
  const open = list === '' ? [] : list.split(',').map(BigInt);
  return xmin > 0n && xmin <= xmax && open.every((xip, index) => xip >= (open[index - 1] ?? xmin) && xip < xmax);
}

/** Marks all transactions below `floor` as seen. */
export function raiseSnapshot(snapshot: string, floor: bigint): string {
  const [low = '1', high = '1', list = ''] = snapshot.split(':');
  if (BigInt(low) >= floor) return snapshot;
  const xmin = floor < BigInt(high) ? floor : BigInt(high);
  const open = list === '' ? [] : list.split(',').filter((xip) => BigInt(xip) >= xmin);
  return `${open[0] ?? xmin}:${high}:${open.join(',')}`;
}
