// What a bucket stores, and its traffic by day.
import type { Context } from '../../../core/context';
import { invalidQuery } from '../../../core/errors';
import { named } from '../../../db/statement';
import type { BucketUsage, BucketUsageDay } from '../../../schema/types';
import type { Bucket } from '../bucket';

const DAY_MS = 86_400_000;
const DAYS_DEFAULT = 30;
const DAYS_MAX = 92;

const NOW = named('select size_bytes, object_count, noncurrent_size_bytes from bucket_usage where bucket_id = $1');
const DAYS = named(`select to_char(day, 'YYYY-MM-DD') as date, size_bytes, egress_bytes, requests::int as requests
  from bucket_days where bucket_id = $1 and day between $2 and $3 order by day`);

/** @throws invalid_query_parameter */
export async function bucketUsage(
  ctx: Context,
  bucket: Bucket,
  args: { from?: string | null; to?: string | null },
): Promise<BucketUsage> {
  const { from, to } = periodOf(args);
  const [[now], daily] = await Promise.all([
    ctx.sql.query<Pick<BucketUsage, 'size_bytes' | 'object_count' | 'noncurrent_size_bytes'>>(NOW, [bucket.id]),
    ctx.sql.query<BucketUsageDay>(DAYS, [bucket.id, from, to]),
  ]);
  const sum = (of: 'egress_bytes' | 'requests'): number => daily.reduce((total, day) => total + day[of], 0);
  return {
    ...(now ?? { size_bytes: 0, object_count: 0, noncurrent_size_bytes: 0 }),
    egress_bytes: sum('egress_bytes'),
    requests: sum('requests'),
    from,
    to,
    daily,
  };
}

function periodOf(args: { from?: string | null; to?: string | null }): { from: string; to: string } {
  const to = args.to != null ? dayOf('to', args.to) : Math.floor(Date.now() / DAY_MS);
  const from = args.from != null ? dayOf('from', args.from) : to - DAYS_DEFAULT + 1;
  if (from > to) throw invalidQuery('from', 'from must not be after to.');
  if (to - from + 1 > DAYS_MAX) throw invalidQuery('from', `from and to may span ${DAYS_MAX} days at most.`);
  if (from < 0) throw invalidQuery(args.from != null ? 'from' : 'to', 'Usage begins in 1970 at the earliest.');
  return { from: dateOf(from), to: dateOf(to) };
}

function dayOf(parameter: string, text: string): number {
  const ms = Date.parse(`${text}T00:00:00Z`);
  // Date.parse turns 30 February into 2 March.
  if (Number.isNaN(ms) || dateOf(ms / DAY_MS) !== text) throw invalidQuery(parameter, `${parameter} is not a date.`);
  return ms / DAY_MS;
}

function dateOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}
