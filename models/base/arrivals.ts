// Rows as they arrive, for readers who follow a list. A transaction may commit behind one that began after it, so no
// single number says what a reader has seen: the place of a reader is a snapshot (core/snapshot.ts), and what has
// arrived are the rows of transactions that were not visible in it. Each row comes once, at once, and none is missed.
// The table needs the columns tx (xid8, the transaction that wrote the row) and seq (bigint, the order within it).
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import {
  EMPTY_SNAPSHOT,
  parseReadPosition,
  formatReadPosition,
  raiseSnapshot,
  type ReadPosition,
} from '../../core/snapshot';
import { named } from '../../db/statement';

interface Arrival<Row> {
  /** The place behind the row. */
  id: string;
  row: Row;
}

/** What is followed. */
interface ArrivalSource {
  table: string;
  /** Columns of a row, seq among them. */
  columns: string;
  /** How many there are at first. */
  newest: number;
  /** How many at a time later. */
  batch: number;
  /** Conditions on rows; `arriving`: of those that come, rather than those that are there. */
  conditions(values: unknown[], arriving: boolean): string[];
}

/**
 * How far a reader has looked behind a place although nothing passed its filters: asked again, it goes on from there.
 */
const looked = new WeakMap<Context, { after: string | null; place: string }>();

/**
 * Rows that arrived after a place; null = the newest ones first of all. In the order of the transactions that wrote
 * them. A context is one reader: what it looked through in vain is not looked through again.
 * @throws invalid_cursor for a place that is none
 */
export async function arrivalsAfter<Row extends object>(
  ctx: Context,
  source: ArrivalSource,
  after: string | null,
): Promise<Arrival<Row>[]> {
  const known = looked.get(ctx);
  const from = known?.after === after ? known.place : after;
  const { rows, until } =
    from === null ? await newest<Row>(ctx, source) : await arrived<Row>(ctx, source, positionOf(from));
  if (rows.length) looked.delete(ctx);
  else looked.set(ctx, { after, place: until });
  return rows;
}

interface Read<Row> {
  rows: Arrival<Row>[];
  /** Snapshot of the look. */
  until: string;
}

async function newest<Row>(ctx: Context, source: ArrivalSource): Promise<Read<Row>> {
  const { rows, now } = await select<Row>(ctx, source, { order: 'desc', limit: source.newest });
  return { rows: placed(rows.reverse(), EMPTY_SNAPSHOT, now, now), until: now };
}

async function arrived<Row>(ctx: Context, source: ArrivalSource, place: ReadPosition): Promise<Read<Row>> {
  const first = await arrivedOnce<Row>(ctx, source, place);
  if (!place.partly || first.rows.length === source.batch) return first;
  // The rest of a batch that was broken off, and what came behind it.
  const { rows, until } = await arrivedOnce<Row>(ctx, source, { seen: first.until, partly: null });
  return { rows: [...first.rows, ...rows], until };
}

async function arrivedOnce<Row>(ctx: Context, source: ArrivalSource, place: ReadPosition): Promise<Read<Row>> {
  const limit = source.batch;
  const { rows, now } = await select<Row>(ctx, source, { order: 'asc', limit, place });
  const until = place.partly?.until ?? now;
  return { rows: placed(rows, place.seen, until, rows.length < limit ? until : null), until };
}

/** @param last place of the last row; null = there may be more up to `until` */
function placed<Row>(rows: readonly Found<Row>[], seen: string, until: string, last: string | null): Arrival<Row>[] {
  return rows.map(({ now: _, tx, seq, ...row }, index) => {
    const isLast = index === rows.length - 1 && last !== null;
    return {
      id: isLast ? last : formatReadPosition({ seen, partly: { until, tx: String(tx), seq: String(seq) } }),
      row: row as Row,
    };
  });
}

/** @throws invalid_cursor */
function positionOf(text: string): ReadPosition {
  const place = parseReadPosition(text);
  if (!place) throw problem('invalid_cursor');
  return place;
}

type Found<Row> = Row & {
  now: string;
  /** null in the row that only tells the snapshot. */
  tx: string | null;
  seq: number;
};

interface Selection {
  order: 'asc' | 'desc';
  limit: number;
  place?: ReadPosition;
}

/** One statement: its rows are those of exactly the snapshot that it tells. */
async function select<Row>(
  ctx: Context,
  source: ArrivalSource,
  { order, limit, place }: Selection,
): Promise<{ rows: Found<Row>[]; now: string }> {
  const values: unknown[] = [];
  const conditions = source.conditions(values, place !== undefined);
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
 * Transactions below this one are over, as far as they are ours. One of somebody else on the same server may stay open
 * for hours, and with it every snapshot; what arrived since would be looked through again and again.
 */
function horizon(now: string): bigint {
  const at = performance.now();
  if (at - (samples[samples.length - 1]?.at ?? -Infinity) > SAMPLE_MS)
    samples.push({ at, xmax: BigInt(now.split(':')[1] ?? '1') });
  while (samples[1] && at - samples[1].at > LONGEST_MS) samples.shift();
  const oldest = samples[0];
  return oldest && at - oldest.at > LONGEST_MS ? oldest.xmax : 0n;
}
