// Runs the checks of a region: claims what is due, checks, and counts the findings in batches. What a process that dies
// had claimed is due again soon, and its findings are void: no incident is opened twice and none is lost.
import { setTimeout as sleep } from 'node:timers/promises';
import type { CheckOutcome } from '../core/checks';
import type { Logger } from '../core/log';
import type { SecretBox } from '../core/secrets';
import type { ControlDatabase } from '../db/control_database';
import type { Monitor } from '../drivers/monitor';
import { openWakeSignal, type WakeSignal } from '../jobs/wake_signal';
import { openUptime } from '../models/observer';
import { claimChecks, postponeChecks, resumeRegion, suspendRegion, type ClaimedCheck } from '../models/observer/claim';
import { hostOf } from '../models/observer/fields';
import { metricValues } from '../models/observer/metric';
import { applyFindings, type Finding } from '../models/observer/results';
import { CHECKS } from '../models/observer/schedule';
import type { NetworkGuard } from './network_guard';

export interface CheckLoop {
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

export interface CheckLoopParts {
  database: ControlDatabase;
  secrets: SecretBox;
  monitor: Monitor;
  guard: NetworkGuard;
  region: string;
  /** Checks under way at a time. */
  concurrency: number;
  log: Logger;
  listen(handlers: Record<string, (payload: string) => void>): { close(): Promise<void> };
}

const POLL_MS = 200;
const CLAIM_MAX = 250;
const BATCH_MAX = 250;
const GATHER_MS = 50;
const OUTAGE_MS = 1_000;
const BEAT_MS = 100;
/** A failure in whose time this process stood still for so long says nothing of the target. */
const STALLED_MS = 1_000;
const RETRY_VOID_MS = 5_000;
const LATE_MS = 5_000;
const WARN_EVERY_MS = 60_000;

type Found = Finding & { fence: number; outcome: CheckOutcome | null };

interface State extends CheckLoopParts {
  running: Set<Promise<void>>;
  found: Found[];
  wakeSignal: WakeSignal;
  stopping: AbortController;
  counts: CheckCounts;
  isSuspended: boolean;
  warnedAt: number;
}

export function startCheckLoop(parts: CheckLoopParts): CheckLoop {
  const counts = { pass: 0, fail: 0, void_overloaded: 0, void_network: 0, lag_ms: 0 };
  const state: State = {
    ...parts,
    ...{ running: new Set(), found: [], wakeSignal: openWakeSignal(), stopping: new AbortController(), counts },
    ...{ isSuspended: false, warnedAt: -Infinity },
  };
  const stalls = watchStalls();
  const listener = parts.listen({ due: (table) => (table === CHECKS ? state.wakeSignal.notify() : undefined) });
  const ended = Promise.all([claimAll(state, stalls), countAll(state)]);
  return {
    counts: () => counts,
    async stop() {
      state.stopping.abort();
      state.wakeSignal.notify();
      await ended;
      stalls.stop();
      await listener.close();
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

async function claimAll(state: State, stalls: Stalls): Promise<void> {
  const { signal } = state.stopping;
  while (!signal.aborted) {
    try {
      const limit = Math.min(CLAIM_MAX, state.concurrency - state.running.size);
      const claimed = limit > 0 ? await claimChecks(state.database, state.region, limit) : [];
      noteLag(state, claimed);
      startChecks(state, claimed, stalls);
      if (claimed.length < CLAIM_MAX) await state.wakeSignal.wait(POLL_MS);
    } catch (error) {
      state.log.warn({ err: error }, 'checks could not be claimed');
      await sleep(OUTAGE_MS, undefined, { signal }).catch(() => {});
    }
  }
  await Promise.all(state.running);
}

function noteLag(state: State, claimed: readonly ClaimedCheck[]): void {
  state.counts.lag_ms = claimed.reduce((most, { lag_ms }) => Math.max(most, lag_ms), 0);
  if (state.counts.lag_ms < LATE_MS || performance.now() - state.warnedAt < WARN_EVERY_MS) return;
  state.warnedAt = performance.now();
  state.log.warn({ lag_ms: Math.round(state.counts.lag_ms) }, 'checks of observers run late');
}

function startChecks(state: State, claimed: readonly ClaimedCheck[], stalls: Stalls): void {
  const metrics = claimed.filter(({ metric }) => metric !== null);
  if (metrics.length) track(state, checkMetrics(state, metrics));
  for (const check of claimed) if (check.uptime) track(state, checkTarget(state, check, stalls));
}

function track(state: State, work: Promise<void>): void {
  const ended: Promise<void> = work
    .catch((error: unknown) => {
      if (!state.stopping.signal.aborted) state.log.error({ err: error }, 'a check met an unexpected error');
    })
    .finally(() => state.running.delete(ended));
  state.running.add(ended);
}

async function checkMetrics(state: State, checks: readonly ClaimedCheck[]): Promise<void> {
  const checked_at = new Date();
  const rules = checks.flatMap(({ metric }) => (metric ? [metric] : []));
  const outcomes = await metricValues(state.database, rules);
  checks.forEach(({ id: observer_id, region, fence }, index) =>
    state.found.push({ observer_id, region, fence, checked_at, outcome: outcomes[index] ?? null }),
  );
}

async function checkTarget(state: State, check: ClaimedCheck, stalls: Stalls): Promise<void> {
  const { id: observer_id, region, fence } = check;
  const [checked_at, stalledBefore] = [new Date(), stalls.total()];
  const asked = openUptime(state, check);
  const outcome = await state.monitor.check(asked, state.stopping.signal);
  state.guard.note(hostOf(asked) ?? asked.target, outcome.unreachable);
  if (outcome.status === 'fail' && stalls.total() - stalledBefore > STALLED_MS) {
    state.counts.void_overloaded += 1;
    state.log.warn({ observer: observer_id }, 'a failed check is made again: this process stood still meanwhile');
    return postponeChecks(state.database, region, [{ observer_id, fence }], RETRY_VOID_MS);
  }
  state.found.push({ observer_id, region, fence, checked_at, outcome });
}

async function countAll(state: State): Promise<void> {
  const { signal } = state.stopping;
  while (!signal.aborted || state.found.length || state.running.size) {
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
  const results = await state.database.transaction((session) => applyFindings(session, counted));
  for (const { status } of results) state.counts[status] += 1;
}

/** The findings without those that may be the fault of our own network. */
async function withoutOurs(state: State, batch: readonly Found[]): Promise<readonly Found[]> {
  const isLost = ({ outcome }: Found): boolean => outcome?.unreachable === true;
  const lost = batch.filter(isLost);
  if (!lost.length && !state.isSuspended) return batch;
  await suspendOrResume(state, await state.guard.isSuspended());
  if (!state.isSuspended || !lost.length) return batch;
  state.counts.void_network += lost.length;
  await postponeChecks(state.database, state.region, lost, RETRY_VOID_MS);
  return batch.filter((found) => !isLost(found));
}

async function suspendOrResume(state: State, isSuspended: boolean): Promise<void> {
  if (isSuspended === state.isSuspended) return;
  const { database, region, log } = state;
  const reason = 'Most targets can not be reached at once: the network of the platform seems to be down.';
  await database.transaction((session) =>
    isSuspended ? suspendRegion(session, region, reason) : resumeRegion(session, region),
  );
  log.warn({ region }, isSuspended ? 'failures are not counted: the network seems to be down' : 'failures count again');
  state.isSuspended = isSuspended;
}
