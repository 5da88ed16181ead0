// Lines of a log as they arrive, for readers who follow it (models/base/arrivals.ts).
import type { Context } from '../../../core/context';
import { limits } from '../../../core/limits';
import { arrivalsAfter, type Arrivals } from '../../base/arrivals';
import { conditionsOf, type LogScope } from './conditions';
import { LINE_COLUMNS, type LogLine, type LogPageArguments } from './page';

/** What arrives was written shortly before, or a day before after an outage: older partitions need not be looked at. */
const ARRIVING_MS = 2 * 24 * 3600 * 1000;

/**
 * Lines that arrived after a place and pass the filters, at most 2000; null = the newest `limit` ones first of all
 * (default 100).
 * @throws invalid_cursor for a place that is none
 */
export function linesAfter(
  ctx: Context,
  scope: LogScope,
  args: LogPageArguments,
  after: string | null,
): Promise<Arrivals<LogLine>> {
  const sinceOf = (seenAt: number): string =>
    new Date(Math.max(seenAt - ARRIVING_MS, Date.parse(args.since ?? '') || 0)).toISOString();
  const filtersOf = (seenAt: number | null): LogPageArguments =>
    seenAt === null ? args : { ...args, since: sinceOf(seenAt) };
  return arrivalsAfter<LogLine>(
    ctx,
    {
      table: 'log_lines',
      columns: LINE_COLUMNS,
      newest: args.limit ?? limits.logPageSizeDefault,
      batch: limits.logPageSizeMax,
      conditions: (values, seenAt) => conditionsOf(scope, filtersOf(seenAt), values) ?? ['false'],
    },
    after,
  );
}
