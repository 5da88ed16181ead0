import { LATENCY_BOUNDS_MS, percentile } from '../../core/log/latency';

const histogram = (entries: Record<number, number>): number[] =>
  [...LATENCY_BOUNDS_MS, Infinity].map((bound) => entries[bound] ?? 0);

test('percentiles are within the bucket of the true value', () => {
  const times = Array.from({ length: 1000 }, (_, index) => (index * 7919) % 1500);
  const buckets = histogram({});
  for (const time of times) buckets[LATENCY_BOUNDS_MS.findIndex((bound) => time <= bound)]! += 1;
  const sorted = [...times].sort((a, b) => a - b);
  for (const share of [0.5, 0.95, 0.99]) {
    const truth = sorted[Math.ceil(share * 1000) - 1]!;
    const upper = LATENCY_BOUNDS_MS.find((bound) => truth <= bound)!;
    const lower = LATENCY_BOUNDS_MS[LATENCY_BOUNDS_MS.indexOf(upper) - 1]!;
    expect(percentile(buckets, share)).toBeGreaterThanOrEqual(lower);
    expect(percentile(buckets, share)).toBeLessThanOrEqual(upper);
  }
  expect(percentile(histogram({}), 0.5)).toBeNull();
});
