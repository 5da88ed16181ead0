// Rate limits: fixed windows of a minute per account and budget. One process counts in memory and is exact.
// Several lease slices of the window from a shared counter: an account may be refused a slice per process early.
import type { Budget, Limiter, RateAnswer } from '../core/context';
import { problem, type Problem } from '../core/errors';
import { limits } from '../core/limits';

const WINDOW_MS = limits.rateWindowSeconds * 1000;
const BUCKETS_MAX = 100_000;

interface Window {
  start: number;
  used: number;
}

/** A counter that processes share: adds `points` to a bucket's window and returns the sum. */
interface SharedCounter {
  add(bucket: string, windowStart: number, points: number): Promise<number>;
}

/** Windows in memory, those that began last at the end of the map. Where there are too many, the oldest goes. */
function windows(): (bucket: string, now: number) => Window {
  const map = new Map<string, Window>();
  return (bucket, now) => {
    const start = now - (now % WINDOW_MS);
    const known = map.get(bucket);
    if (known && known.start === start) return known;
    const fresh = { start, used: 0 };
    map.delete(bucket);
    map.set(bucket, fresh);
    if (map.size > BUCKETS_MAX) map.delete(map.keys().next().value as string);
    return fresh;
  };
}

function answer(allowed: boolean, limit: number, used: number, now: number): RateAnswer {
  const reset_seconds = Math.max(1, Math.ceil((WINDOW_MS - (now % WINDOW_MS)) / 1000));
  return { allowed, limit, remaining: Math.max(0, limit - used), reset_seconds };
}

/** Exact within one process. */
export function memoryLimiter(budgets: Record<Budget, number>): Limiter {
  const windowOf = windows();
  return {
    async take(account, budget, points) {
      const now = Date.now();
      const window = windowOf(`${budget} ${account}`, now);
      const limit = budgets[budget];
      if (window.used + points > limit) return answer(false, limit, window.used, now);
      window.used += points;
      return answer(true, limit, window.used, now);
    },
    give(account, budget, points) {
      const window = windowOf(`${budget} ${account}`, Date.now());
      window.used = Math.max(0, window.used - points);
    },
  };
}

interface Lease extends Window {
  left: number;
  granted: number;
  pending: Promise<void> | null;
}

const SLICES = 20;

/**
 * For several processes: each leases a twentieth of the budget at a time. A process may hold one unused slice when the
 * window's budget is gone, so an account is refused at most one slice per process early, and never passes the limit.
 * Where the shared counter does not answer, the process counts alone.
 */
export function sharedLimiter(budgets: Record<Budget, number>, counter: SharedCounter): Limiter {
  const leases = new Map<string, Lease>();
  const leaseOf = (bucket: string, now: number): Lease => {
    const start = now - (now % WINDOW_MS);
    const known = leases.get(bucket);
    if (known && known.start === start) return known;
    if (leases.size >= BUCKETS_MAX) leases.clear();
    const fresh: Lease = { start, used: 0, left: 0, granted: 0, pending: null };
    leases.set(bucket, fresh);
    return fresh;
  };
  return {
    async take(account, budget, points) {
      const now = Date.now();
      const limit = budgets[budget];
      const bucket = `${budget} ${account}`;
      const lease = leaseOf(bucket, now);
      while (lease.left < points && lease.granted < limit) {
        lease.pending ??= refill(lease, bucket, limit, counter).finally(() => (lease.pending = null));
        await lease.pending;
      }
      if (lease.left < points) return answer(false, limit, limit, now);
      lease.left -= points;
      return answer(true, limit, Math.max(lease.granted - lease.left, 0), now);
    },
    give(account, budget, points) {
      leaseOf(`${budget} ${account}`, Date.now()).left += points;
    },
  };
}

// `granted` is the whole window as this process knows it: what all processes have leased so far.
async function refill(lease: Lease, bucket: string, limit: number, counter: SharedCounter): Promise<void> {
  const slice = Math.max(1, Math.floor(limit / SLICES));
  try {
    const sum = await counter.add(bucket, lease.start, slice);
    const before = sum - slice;
    lease.left += Math.max(0, Math.min(slice, limit - before));
    lease.granted = Math.min(sum, limit);
  } catch {
    lease.left += slice;
    lease.granted = Math.min(lease.granted + slice, limit);
  }
}

/** Counts attempts of a bucket (failed log-ins of an address). */
export interface Attempts {
  /** rate_limited with Retry-After when the bucket is used up, else null. @param times size in usual ones */
  refusal(bucket: string, detail?: string, times?: number): Problem | null;
  /** Counts one. */
  count(bucket: string): void;
}

/** @param perMinute attempts that one bucket may make in a minute */
export function openAttempts(perMinute: number): Attempts {
  const windowOf = windows();
  return {
    refusal(bucket, detail = 'Too many failed attempts.', times = 1) {
      const now = Date.now();
      const limit = perMinute * times;
      if (windowOf(bucket, now).used < limit) return null;
      const { reset_seconds } = answer(false, limit, limit, now);
      return problem('rate_limited', detail, {}, { 'Retry-After': String(reset_seconds) });
    },
    count(bucket) {
      windowOf(bucket, Date.now()).used += 1;
    },
  };
}
