// Lines as they arrive, for readers who follow a log. Their order is that of the transactions that wrote them: by time,
// a line of a transaction that commits late would come in behind a reader who has gone on. A reader sees the lines of
// transactions that are older than every open one (tx < xmin of the snapshot): nothing can be added among them.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { limits } from '../../core/limits';
import { named } from '../statement';
import { conditionsOf, type LogScope } from './conditions';
import { LINE_COLUMNS, type LogLine, type LogPageArguments } from './page';

export interface TailLine {
  /** The place behind the line: `<transaction>.<sequence>`. */
  id: string;
  line: LogLine;
}

interface Row extends LogLine {
  xmin: string;
  /** Lines that wait for an older transaction to end. */
  waiting: boolean;
  tx: string | null;
  seq: number;
}

/** What arrives is of today, or of yesterday after an outage: older partitions need not be looked at. */
const ARRIVING_MS = 2 * 24 * 3600 * 1000;
const WAITING = { times: 10, ms: 50 };

/** How far a reader has looked behind a place although nothing passed its filters: asked again, it goes on from there. */
const looked = new WeakMap<Context, { after: string; place: string }>();

/**
 * Lines that arrived after a place and pass the filters, at most 1000; null = the newest `limit` ones first of all
 * (default 100). All in the order of arrival. Waits up to half a second for lines that are written but not yet settled.
 * A context is one reader: what it looked through in vain is not looked through again.
 * @throws invalid_cursor for a place that is none
 */
export async function linesAfter(ctx: Context, scope: LogScope, args: LogPageArguments, after: string | null): Promise<TailLine[]> {
  if (after === null) return newest(ctx, scope, args);
  const known = looked.get(ctx);
  const from = placeOf(known?.after === after ? known.place : after);
  for (let turn = 1; ; turn += 1) {
    const { lines, xmin, waiting } = await arrived(ctx, scope, args, from);
    if (!lines.length) looked.set(ctx, { after, place: `${xmin}.0` });
    if (lines.length || !waiting || turn === WAITING.times) return lines;
    await sleep(WAITING.ms);
  }
}

async function newest(ctx: Context, scope: LogScope, args: LogPageArguments): Promise<TailLine[]> {
  const { rows } = await select(ctx, scope, args, { order: 'desc', limit: args.limit ?? limits.logPageSizeDefault });
  return rows.reverse().map(tailLine);
}

async function arrived(ctx: Context, scope: LogScope, args: LogPageArguments, from: Place): Promise<{ lines: TailLine[]; xmin: string; waiting: boolean }> {
  const since = new Date(Math.max(Date.now() - ARRIVING_MS, Date.parse(args.since ?? '') || 0)).toISOString();
  const { rows, xmin, waiting } = await select(ctx, scope, { ...args, since }, { order: 'asc', limit: limits.logPageSizeMax, from });
  return { lines: rows.map(tailLine), xmin, waiting };
}

/** Transaction and sequence. */
type Place = [tx: string, seq: string];

/** @throws invalid_cursor */
function placeOf(text: string): Place {
  const [, tx, seq] = /^(\d{1,18})\.(\d{1,18})$/.exec(text) ?? [];
  if (tx === undefined || seq === undefined) throw problem('invalid_cursor');
  return [tx, seq];
}

interface Selection {
  order: 'asc' | 'desc';
  limit: number;
  from?: Place;
}

async function select(ctx: Context, scope: LogScope, args: LogPageArguments, { order, limit, from }: Selection): Promise<{ rows: Row[]; xmin: string; waiting: boolean }> {
  const values: unknown[] = [];
  const conditions = conditionsOf(scope, args, values) ?? ['false'];
  if (from) conditions.push(`(tx, seq) > ($${values.push(from[0])}::xid8, $${values.push(from[1])}::bigint)`);
  const where = conditions.join(' and ');
  const text = `select snapshot.xmin::text, lines.*${from ? `, exists (select from log_lines where ${where} and tx >= snapshot.xmin)` : ', false'} as waiting
    from (select pg_snapshot_xmin(pg_current_snapshot()) as xmin) as snapshot
    left join lateral (select ${LINE_COLUMNS}, tx::text from log_lines where ${where} and tx < snapshot.xmin
      order by log_lines.tx ${order}, seq ${order} limit $${values.push(limit)}) as lines on true`;
  const rows = await ctx.sql.query<Row>(named(text), values);
  return { rows: rows.filter(({ tx }) => tx !== null), xmin: rows[0]?.xmin ?? '0', waiting: rows[0]?.waiting ?? false };
}

function tailLine({ xmin: _, waiting: __, tx, seq, ...line }: Row): TailLine {
  return { id: `${tx}.${seq}`, line };
}
