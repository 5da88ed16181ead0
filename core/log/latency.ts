// Histogram of response times: counted by the ingress, merged in the database, evaluated as percentiles.

/**
 * Upper bounds in milliseconds; one more bucket counts larger values. Never change them: stored histograms use them.
 */
export const LATENCY_BOUNDS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000] as const;

export const LATENCY_BUCKETS = LATENCY_BOUNDS_MS.length + 1;

/**
 * A percentile in milliseconds, interpolated linearly within its bucket, so the error is at most the width of the
 * bucket. Values above the last bound count as that bound. Null for an empty histogram.
 * @param buckets LATENCY_BUCKETS counts
 * @param share 0.95 for the 95th percentile
 */
export function percentile(buckets: readonly number[], share: number): number | null {
  const wanted = share * buckets.reduce((sum, count) => sum + count, 0);
  let below = 0;
  for (const [index, count] of buckets.entries()) {
    if (count && below + count >= wanted) return within(index, (wanted - below) / count);
    below += count;
  }
  return null;
}

function within(index: number, part: number): number {
  const lower = LATENCY_BOUNDS_MS[index - 1] ?? 0;
  const upper = LATENCY_BOUNDS_MS[index] ?? lower;
  return Math.round((lower + (upper - lower) * part) * 100) / 100;
}
