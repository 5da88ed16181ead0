// Runs the checks of a region: claims due checks, runs them, and stores the results in batches. Checks claimed by a
// process that died are soon due again, and their results are discarded: no incident is opened twice and none is lost.
import { setTimeout as sleep } from 'node:timers/promises';
import type { CheckOutcome, MetricRule, UptimeCheck } from '../../core/protocols/checks';
import type { Logger } from '../../core/log/log';
import type { Monitor } from '../../drivers/monitor';
import { startClaimLoop, type ClaimLoop } from '../claim_loop';
import type { WakeSignal } from '../wake_signal';
import { hostOf } from '../../models/observers/observer/fields';
import type { Finding } from '../../models/observers/observer/results';
import type { NetworkGuard } from './network_guard';

/** A check that this process has claimed. */
export interface DueCheck {
  observer_id: string;
  region: string;
  /** '' where this process does not know it. */
  account: string;
  fence: number;
  /** Since when it has been due. */
  lag_ms: number;
  metric: MetricRule | null;
  /** What to check, with the values of headers; not of a metric. */
  openUptime(): UptimeCheck;
}

/** Where checks come from and findings go: the database, or the platform over HTTP. */
export interface CheckStore {
  /** @param passOver accounts that have had their turn */
  claim(limit: number, passOver: readonly string[]): Promise<DueCheck[]>;
  metricValues(rules: readonly MetricRule[]): Promise<(CheckOutcome | null)[]>;
  /** Counts findings, and answers the statuses of those that count. Called again with the same ones where it fails. */
  count(findings: readonly Finding[]): Promise<{ status: 'pass' | 'fail' }[]>;
  /** Checks whose failures say nothing of their targets. */
  postpone(checks: readonly Pick<DueCheck, 'observer_id' | 'fence'>[]): Promise<void>;
  /** Whether failures are counted at all at the moment. */
  setSuspended(isSuspended: boolean): Promise<void>;
}

interface CheckLoop {
  /** Since the start. */
  counts(): CheckCounts;
  /** Cuts the checks that run; they are due again soon. */
  stop(): Promise<void>;
}

export interface CheckCounts {
  pass: number;
  fail: number;
  /** Not counted, because this process was too busy to be believed. */
  void_overloaded: number;
  /** Not counted, because the network of the platform seems to be down. */
  void_network: number;
  /** Of the checks claimed last, the longest. */
  lag_ms: number;
}

interface CheckLoopParts {
  store: CheckStore;
  monitor: Monitor;
  guard: NetworkGuard;
  /** Checks under way at a time. */
  concurrency: number;
  /** Between two looks for checks. */
  pollMs: number;
  /** Rings when there may be some. */
  wakeSignal: WakeSignal;
  log: Logger;
}

/** Checks that one process runs at the same time. */
export const CHECKS_AT_ONCE = 2_000;
const CLAIM_MAX = 250;
const BATCH_MAX = 250;
const GATHER_MS = 50;
const OUTAGE_MS = 1_000;
const BEAT_MS = 100;
/** A failure in whose time this process stood still for so long says nothing of the target. */
const STALLED_MS = 1_000;
const LATE_MS = 5_000;
const WARN_EVERY_MS = 60_000;

type Found = Finding & { fence: number; outcome: CheckOutcome | null };

interface State extends CheckLoopParts {
  /** Checks under way. */
  running: number;
  found: Found[];
  stopping: AbortController;
  counts: CheckCounts;
  /** null: not known. One that has died may have said so. */
  isSuspended: boolean | null;
  warnedAt: number;
}

export function startCheckLoop(parts: CheckLoopParts): CheckLoop {
  const counts = { pass: 0, fail: 0, void_overloaded: 0, void_network: 0, lag_ms: 0 };
  const state: State = {
    ...parts,
    ...{ running: 0, found: [], stopping: new AbortController(), counts },
    ...{ isSuspended: null, warnedAt: -Infinity },
  };
  const stalls = watchStalls();
  const claims = startClaims(state, stalls);
  const counted = countAll(state);
  return {
    counts: () => counts,
    async stop() {
      state.stopping.abort();
      await Promise.all([claims.stop(), counted]);
      stalls.stop();
    },
  };
}

interface Stalls {
  /** Milliseconds in which this process did nothing although it should have, since the start. */
  total(): number;
  stop(): void;
}

function watchStalls(): Stalls {
  let total = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    total += Math.max(0, now - last - BEAT_MS * 2);
    last = now;
  }, BEAT_MS).unref();
  return { total: () => total + Math.max(0, performance.now() - last - BEAT_MS * 2), stop: () => clearInterval(timer) };
}

function startClaims(state: State, stalls: Stalls): ClaimLoop {
  return startClaimLoop<DueCheck>(
    {
      places: state.concurrency,
      room: () => Math.min(CLAIM_MAX, state.concurrency - state.running),
      claim: (limit, passOver) => state.store.claim(limit, passOver),
      start(claimed, track) {
        noteLag(state, claimed);
        for (const { work, account } of begin(state, claimed, stalls)) track(checked(state, work), account);
      },
      pauseAfter: (claimed) => (claimed < CLAIM_MAX ? 'poll' : 0),
      pollMs: state.pollMs,
      failed: (error) => state.log.warn({ err: error }, 'checks could not be claimed'),
    },
    state.wakeSignal,
  );
}

function noteLag(state: State, claimed: readonly DueCheck[]): void {
  state.counts.lag_ms = claimed.reduce((most, { lag_ms }) => Math.max(most, lag_ms), 0);
  if (state.counts.lag_ms < LATE_MS || performance.now() - state.warnedAt < WARN_EVERY_MS) return;
  state.warnedAt = performance.now();
  state.log.warn({ lag_ms: Math.round(state.counts.lag_ms) }, 'checks of observers run late');
}

interface Begun {
  work: Promise<void>;
  account: string;
}

function begin(state: State, claimed: readonly DueCheck[], stalls: Stalls): Begun[] {
  const metrics = claimed.filter(({ metric }) => metric !== null);
  const targets = claimed.filter(({ metric }) => metric === null);
  return [
    ...(metrics.length ? [{ work: checkMetrics(state, metrics), account: '' }] : []),
    ...targets.map((check) => ({ work: checkTarget(state, check, stalls), account: check.account })),
  ];
}

async function checked(state: State, work: Promise<void>): Promise<void> {
  state.running += 1;
  try {
    await work;
  } catch (error) {
    if (!state.stopping.signal.aborted) state.log.error({ err: error }, 'a check met an unexpected error');
  } finally {
    state.running -= 1;
  }
}

async function checkMetrics(state: State, checks: readonly DueCheck[]): Promise<void> {
  const checked_at = new Date();
  const rules = checks.flatMap(({ metric }) => (metric ? [metric] : []));
  const outcomes = await state.store.metricValues(rules);
  checks.forEach(({ observer_id, region, fence }, index) =>
    state.found.push({ observer_id, region, fence, checked_at, outcome: outcomes[index] ?? null }),
  );
}

async function checkTarget(state: State, check: DueCheck, stalls: Stalls): Promise<void> {
  const { observer_id, region, fence } = check;
  const target = check.openUptime();
  const [checked_at, stalledBefore] = [new Date(), stalls.total()];
  const outcome = await state.monitor.check(target, state.stopping.signal);
  state.guard.note(hostOf(target) ?? target.target, outcome.unreachable);
  if (outcome.status === 'fail' && stalls.total() - stalledBefore > STALLED_MS) {
    state.counts.void_overloaded += 1;
    state.log.warn({ observer: observer_id }, 'a failed check is made again: this process stood still meanwhile');
    return state.store.postpone([{ observer_id, fence }]);
  }
  state.found.push({ observer_id, region, fence, checked_at, outcome });
}

async function countAll(state: State): Promise<void> {
  const { signal } = state.stopping;
  while (!signal.aborted || state.found.length || state.running) {
    const batch = state.found.splice(0, BATCH_MAX);
    try {
      if (batch.length) await countBatch(state, batch);
      if (!state.found.length) await sleep(GATHER_MS);
    } catch (error) {
      state.log.warn({ err: error }, 'findings of checks could not be written');
      // Void by now, or soon, if this lasts: then the checks are made again.
      if (!signal.aborted) state.found.unshift(...batch);
      await sleep(OUTAGE_MS);
    }
  }
}

async function countBatch(state: State, batch: readonly Found[]): Promise<void> {
  const counted = await withoutOurs(state, batch);
  if (!counted.length) return;
  const results = await state.store.count(counted);
  for (const { status } of results) state.counts[status] += 1;
}

/** The findings without those that may be the fault of our own network. */
async function withoutOurs(state: State, batch: readonly Found[]): Promise<readonly Found[]> {
  const isLost = ({ outcome }: Found): boolean => outcome?.unreachable === true;
  const lost = batch.filter(isLost);
  if (!lost.length && state.isSuspended === false) return batch;
  await suspendOrResume(state, await state.guard.isSuspended());
  if (!state.isSuspended || !lost.length) return batch;
  state.counts.void_network += lost.length;
  await state.store.postpone(lost);
  return batch.filter((found) => !isLost(found));
}

async function suspendOrResume(state: State, isSuspended: boolean): Promise<void> {
  if (isSuspended === state.isSuspended) return;
  await state.store.setSuspended(isSuspended);
  if (isSuspended) state.log.warn('failures are not counted: the network seems to be down');
  else if (state.isSuspended) state.log.warn('failures count again');
  state.isSuspended = isSuspended;
}
