// Lines of a log as they arrive, for readers who follow it (models/base/arrivals.ts).
import type { Context } from '../../../core/context';
import { limits } from '../../../core/limits';
import { arrivalsAfter } from '../../base/arrivals';
import { conditionsOf, type LogScope } from './conditions';
import { LINE_COLUMNS, type LogLine, type LogPageArguments } from './page';

export interface TailLine {
  /** The place behind the line. */
  id: string;
  line: LogLine;
}

/** What arrives is of today, or of yesterday after an outage: older partitions need not be looked at. */
const ARRIVING_MS = 2 * 24 * 3600 * 1000;

/**
 * Lines that arrived after a place and pass the filters, at most 2000; null = the newest `limit` ones first of all
 * (default 100).
 * @throws invalid_cursor for a place that is none
 */
export async function linesAfter(
  ctx: Context,
  scope: LogScope,
  args: LogPageArguments,
  after: string | null,
): Promise<TailLine[]> {
  const since = new Date(Math.max(Date.now() - ARRIVING_MS, Date.parse(args.since ?? '') || 0)).toISOString();
  const found = await arrivalsAfter<LogLine>(
    ctx,
    {
      table: 'log_lines',
      columns: LINE_COLUMNS,
      newest: args.limit ?? limits.logPageSizeDefault,
      batch: limits.logPageSizeMax,
      conditions: (values, arriving) => conditionsOf(scope, arriving ? { ...args, since } : args, values) ?? ['false'],
    },
    after,
  );
  return found.map(({ id, row }) => ({ id, line: row }));
}
