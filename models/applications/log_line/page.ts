// Pages of a log, by time.
import type { Context } from '../../../core/context';
import { hashFilters } from '../../../core/cursor';
import { limits } from '../../../core/limits';
import type { DatabaseLogSource, LogLevel, LogSource, LogStep } from '../../../core/log/log_line';
import type { Page } from '../../base/page';
import { named } from '../../../db/statement';
import { conditionsOf, type LogFilters, type LogScope } from './conditions';
import type { LogOrder } from '../../../schema/types';

/** A line in a response; each list fills the members that apply to it. */
export interface LogLine {
  timestamp: string;
  source: LogSource;
  level: LogLevel;
  message: string;
  process_type: string | null;
  instance_id: string | null;
  deployment_id: string | null;
  preview_id: string | null;
  step: LogStep | null;
}

/** A line of a database server. */
export interface DatabaseLine extends Omit<LogLine, 'source'> {
  source: DatabaseLogSource;
}

/** A line of a deployment. */
export interface StepLine extends LogLine {
  step: LogStep;
}

export interface LogPageArguments extends LogFilters {
  limit?: number | null;
  cursor?: string | null;
  order?: LogOrder | null;
}

export const LINE_COLUMNS =
  'at as timestamp, seq, source, level, message, process_type, instance_id, deployment_id, preview_id, step';

/** One page in the order of time, newest first unless `order` says asc. @throws invalid_cursor */
export async function logPage<Line extends LogLine | DatabaseLine = LogLine>(
  ctx: Context,
  scope: LogScope,
  args: LogPageArguments,
): Promise<Page<Line>> {
  const { limit, cursor, order, ...filters } = args;
  const sort = order ?? 'desc';
  const expect = {
    sort,
    filters: hashFilters({
      ...present(filters),
      of: scope.column,
      id: scope.id,
      ...(scope.step && { step: scope.step }),
      owner: 'application_id' in scope ? scope.application_id : scope.project_id,
    }),
  };
  const after = cursor != null ? ctx.cursors.decode(cursor, expect) : null;
  const values: unknown[] = [];
  const conditions = conditionsOf(scope, filters, values);
  if (!conditions) return { data: [], next_cursor: null };
  if (after)
    conditions.push(
      `(at, seq) ${sort === 'asc' ? '>' : '<'} ($${values.push(after.key)}, $${values.push(after.id)}::bigint)`,
    );
  const size = limit ?? limits.logPageSizeDefault;
  const text = `select ${LINE_COLUMNS} from log_lines where ${conditions.join(' and ')}
    order by at ${sort}, seq ${sort} limit $${values.push(size + 1)}`;
  const rows = await ctx.sql.query<Line & { seq: number }>(named(text), values);
  const data = rows.slice(0, size);
  const last = data[data.length - 1];
  const next_cursor =
    rows.length > size && last ? ctx.cursors.encode({ ...expect, key: last.timestamp, id: String(last.seq) }) : null;
  return { data, next_cursor };
}

/** null is as good as absent, and so is an empty search. */
function present(filters: LogFilters): Record<string, unknown> {
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value != null && value !== ''));
}
