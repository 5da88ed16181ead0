// Lines as they arrive, for readers who follow a log. A transaction may commit behind one that began after it, so no
// single number says what a reader has seen: the place of a reader is a snapshot (core/snapshot.ts), and what has
// arrived are the lines of transactions that were not visible in it. Each line comes once, at once, and none is missed.
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { limits } from '../../core/limits';
import {
  EMPTY_SNAPSHOT,
  parseReadPosition,
  formatReadPosition,
  raiseSnapshot,
  type ReadPosition,
} from '../../core/snapshot';
import { named } from '../../db/statement';
import { conditionsOf, type LogScope } from './conditions';
import { LINE_COLUMNS, type LogLine, type LogPageArguments } from './page';
import type { LogOrder } from '../../schema/types';

export interface TailLine {
  /** The place behind the line. */
  id: string;
  line: LogLine;
}

/** What arrives is of today, or of yesterday after an outage: older partitions need not be looked at. */
const ARRIVING_MS = 2 * 24 * 3600 * 1000;

/**
 * How far a reader has looked behind a place although nothing passed its filters: asked again, it goes on from there.
 */
const looked = new WeakMap<Context, { after: string | null; place: string }>();

/**
 * Lines that arrived after a place and pass the filters, at most 2000; null = the newest `limit` ones first of all
 * (default 100). In the order of the transactions that wrote them.
 * A context is one reader: what it looked through in vain is not looked through again.
 * @throws invalid_cursor for a place that is none
 */
export async function linesAfter(
  ctx: Context,
  scope: LogScope,
  args: LogPageArguments,
  after: string | null,
): Promise<TailLine[]> {
  const known = looked.get(ctx);
  const from = known?.after === after ? known.place : after;
  const { lines, until } =
    from === null ? await newest(ctx, scope, args) : await arrived(ctx, scope, args, positionOf(from));
  if (lines.length) looked.delete(ctx);
  else looked.set(ctx, { after, place: until });
  return lines;
}

interface TailRead {
  lines: TailLine[];
  /** Snapshot of the look. */
  until: string;
}

async function newest(ctx: Context, scope: LogScope, args: LogPageArguments): Promise<TailRead> {
  const { rows, now } = await select(ctx, scope, args, {
    order: 'desc',
    limit: args.limit ?? limits.logPageSizeDefault,
  });
  return { lines: placed(rows.reverse(), EMPTY_SNAPSHOT, now, now), until: now };
}

async function arrived(ctx: Context, scope: LogScope, args: LogPageArguments, place: ReadPosition): Promise<TailRead> {
  const first = await arrivedOnce(ctx, scope, args, place);
  if (!place.partly || first.lines.length === limits.logPageSizeMax) return first;
  // The rest of a batch that was broken off, and what came behind it.
  const { lines, until } = await arrivedOnce(ctx, scope, args, { seen: first.until, partly: null });
  return { lines: [...first.lines, ...lines], until };
}

async function arrivedOnce(
  ctx: Context,
  scope: LogScope,
  args: LogPageArguments,
  place: ReadPosition,
): Promise<TailRead> {
  const since = new Date(Math.max(Date.now() - ARRIVING_MS, Date.parse(args.since ?? '') || 0)).toISOString();
  const limit = limits.logPageSizeMax;
  const { rows, now } = await select(ctx, scope, { ...args, since }, { order: 'asc', limit, place });
  const until = place.partly?.until ?? now;
  return { lines: placed(rows, place.seen, until, rows.length < limit ? until : null), until };
}

/** @param last place of the last line; null = there may be more up to `until` */
function placed(rows: readonly Row[], seen: string, until: string, last: string | null): TailLine[] {
  return rows.map(({ now: _, tx, seq, ...line }, index) => {
    const isLast = index === rows.length - 1 && last !== null;
    return {
      id: isLast ? last : formatReadPosition({ seen, partly: { until, tx: String(tx), seq: String(seq) } }),
      line,
    };
  });
}

/** @throws invalid_cursor */
function positionOf(text: string): ReadPosition {
  const place = parseReadPosition(text);
  if (!place) throw problem('invalid_cursor');
  return place;
}

interface Row extends LogLine {
  now: string;
  /** null in the row that only tells the snapshot. */
  tx: string | null;
  seq: number;
}

interface Selection {
  order: LogOrder;
  limit: number;
  place?: ReadPosition;
}

/** One statement: its lines are those of exactly the snapshot that it tells. */
async function select(
  ctx: Context,
  scope: LogScope,
  args: LogPageArguments,
  { order, limit, place }: Selection,
): Promise<{ rows: Row[]; now: string }> {
  const values: unknown[] = [];
  const conditions = conditionsOf(scope, args, values) ?? ['false'];
  if (place) conditions.push(...arrivedConditions(place, values));
  const text = `select pg_current_snapshot()::text as now, lines.* from (select) as always
    left join (select ${LINE_COLUMNS}, tx::text as tx from log_lines where ${conditions.join(' and ')}
      order by log_lines.tx ${order}, seq ${order} limit $${values.push(limit)}) as lines on true
        order by lines.tx::xid8 ${order}, lines.seq ${order}`;
  const rows = await ctx.sql.query<Row>(named(text), values);
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
