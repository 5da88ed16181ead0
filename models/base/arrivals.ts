// Rows as they arrive, for readers who follow a list. A transaction may commit behind one that began after it, so no
// single number says what a reader has seen: the place of a reader is a snapshot (core/protocols/snapshot.ts), and what
// has arrived are the rows of transactions that were not visible in it. Each row comes once, at once, and none is
// missed.
// The table needs the columns tx (xid8, the transaction that wrote the row) and seq (bigint, the order within it).
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import {
  EMPTY_SNAPSHOT,
  parseReadPosition,
  formatReadPosition,
  raiseSnapshot,
  type ReadPosition,
} from '../../core/protocols/snapshot';
import { named } from '../../db/statement';

export interface Arrival<Row> {
  /** The place behind the row. */
  id: string;
  row: Row;
}

/** What one reading found. */
export interface Arrivals<Row> {
  /** The place before the first row. */
  from: string;
  rows: Arrival<Row>[];
  /** The place behind the last row, and behind what passed no filter. */
  to: string;
}

/** A table whose new rows are followed. */
interface ArrivalSource {
  table: string;
  /** Columns of a row, seq among them. */
  columns: string;
  /** How many there are at first. */
  newest: number;
  /** How many at a time later. */
  batch: number;
  /** Conditions on rows. @param seenAt since when they have been arriving; null = they may be of any age */
  conditions(values: unknown[], seenAt: number | null): string[];
}

/**
 * Rows that arrived after a place; null = the newest ones first of all. In the order of the transactions that wrote
 * them.
 * @throws invalid_cursor for a place that is none
 */
export function arrivalsAfter<Row extends object>(
  ctx: Context,
  source: ArrivalSource,
  after: string | null,
): Promise<Arrivals<Row>> {
  return after === null ? newest<Row>(ctx, source) : arrived<Row>(ctx, source, parsePlace(after));
}

/** A position, and beside its snapshot, which has no time, when that was taken: what arrives is hardly older. */
interface Place extends ReadPosition {
  /** Of `seen`; null = rows of any age may come. */
  seenAt: number | null;
}

const formatPlace = ({ seenAt, ...position }: Place): string =>
  formatReadPosition(position) + (seenAt === null ? '' : `@${seenAt}`);

/** @throws invalid_cursor */
function parsePlace(text: string): Place {
  const [, position, at] = /^([^@]*)(?:@(\d{1,15}))?$/.exec(text) ?? [];
  const place = parseReadPosition(position ?? '');
  if (!place) throw problem('invalid_cursor');
  return { ...place, seenAt: at === undefined ? null : Number(at) };
}

/** Before everything. */
const BEGINNING = { seen: EMPTY_SNAPSHOT, seenAt: null };

async function newest<Row>(ctx: Context, source: ArrivalSource): Promise<Arrivals<Row>> {
  const { rows, now } = await select<Row>(ctx, source, { order: 'desc', limit: source.newest });
  rows.reverse();
  const end = { seen: now, partly: null, seenAt: Date.now() };
  const [first] = rows;
  // What comes before the first of them is no part of the newest.
  const partly = first && { until: now, tx: String(first.tx), seq: String(first.seq - 1) };
  const from = formatPlace(partly ? { ...BEGINNING, partly } : end);
  return { from, rows: placed(rows, BEGINNING, now, end), to: formatPlace(end) };
}

async function arrived<Row>(ctx: Context, source: ArrivalSource, place: Place): Promise<Arrivals<Row>> {
  const first = await arrivedOnce<Row>(ctx, source, place);
  if (!first.end || !place.partly) return first;
  // The rest of a batch that was broken off, and what came behind it.
  const { rows, to } = await arrivedOnce<Row>(ctx, source, first.end);
  return { from: first.from, rows: [...first.rows, ...rows], to };
}

/** @returns end null where there may be more up to it */
async function arrivedOnce<Row>(
  ctx: Context,
  source: ArrivalSource,
  place: Place,
): Promise<Arrivals<Row> & { end: Place | null }> {
  const limit = source.batch;
  const seenAt = place.partly ? place.seenAt : Date.now();
  const found = await select<Row>(ctx, source, { order: 'asc', limit, place });
  const until = place.partly?.until ?? found.now;
  const end = found.rows.length < limit ? { seen: until, partly: null, seenAt } : null;
  const rows = placed(found.rows, place, until, end);
  return { from: formatPlace(place), rows, end, to: end ? formatPlace(end) : (rows.at(-1)?.id as string) };
}

/** @param end place of the last row; null = there may be more up to `until` */
function placed<Row>(
  rows: readonly Found<Row>[],
  { seen, seenAt }: Pick<Place, 'seen' | 'seenAt'>,
  until: string,
  end: Place | null,
): Arrival<Row>[] {
  return rows.map(({ now: _, tx, seq, ...row }, index) => {
    const own = { seen, seenAt, partly: { until, tx: String(tx), seq: String(seq) } };
    return { id: formatPlace(index === rows.length - 1 && end ? end : own), row: row as Row };
  });
}

type Found<Row> = Row & {
  now: string;
  /** null in the row that only carries the snapshot. */
  tx: string | null;
  seq: number;
};

interface Selection {
  order: 'asc' | 'desc';
  limit: number;
  place?: Place;
}

/** One statement: its rows are exactly those of the snapshot that it returns. */
async function select<Row>(
  ctx: Context,
  source: ArrivalSource,
  { order, limit, place }: Selection,
): Promise<{ rows: Found<Row>[]; now: string }> {
  const values: unknown[] = [];
  const conditions = source.conditions(values, place?.seenAt ?? null);
  if (place) conditions.push(...arrivedConditions(place, values));
  const { table, columns } = source;
  const text = `select pg_current_snapshot()::text as now, found.* from (select) as always
    left join (select ${columns}, tx::text as tx from ${table} where ${conditions.join(' and ')}
      order by ${table}.tx ${order}, seq ${order} limit $${values.push(limit)}) as found on true
        order by found.tx::xid8 ${order}, found.seq ${order}`;
  const rows = await ctx.sql.query<Found<Row>>(named(text), values);
  return {
    rows: rows.filter(({ tx }) => tx !== null),
    now: raiseSnapshot(rows[0]?.now ?? EMPTY_SNAPSHOT, horizon(rows[0]?.now ?? EMPTY_SNAPSHOT)),
  };
}

function arrivedConditions({ seen, partly }: ReadPosition, values: unknown[]): string[] {
  const snapshot = `$${values.push(seen)}::pg_snapshot`;
  const conditions = [`tx >= pg_snapshot_xmin(${snapshot})`, `not pg_visible_in_snapshot(tx, ${snapshot})`];
  if (partly) {
    conditions.push(`(tx, seq) > ($${values.push(partly.tx)}::xid8, $${values.push(partly.seq)}::bigint)`);
    conditions.push(`pg_visible_in_snapshot(tx, $${values.push(partly.until)}::pg_snapshot)`);
  }
  return conditions;
}

/** No transaction of the platform lives as long: the time-outs of db/control_database.ts see to it. */
const LONGEST_MS = 60_000;
const SAMPLE_MS = 10_000;
const samples: { at: number; xmax: bigint }[] = [];

/**
 * Transactions of ours below this one have ended. A foreign transaction on the same server may stay open for hours, and
 * hold back the xmin of every snapshot; without this bound, all rows since then would be read again at each poll.
 */
function horizon(now: string): bigint {
  const at = performance.now();
  if (at - (samples[samples.length - 1]?.at ?? -Infinity) > SAMPLE_MS)
    samples.push({ at, xmax: BigInt(now.split(':')[1] ?? '1') });
  while (samples[1] && at - samples[1].at > LONGEST_MS) samples.shift();
  const oldest = samples[0];
  return oldest && at - oldest.at > LONGEST_MS ? oldest.xmax : 0n;
}
