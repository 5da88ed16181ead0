// The reconcile loop: claims due rows of all jobs' tables and runs a step on each. It is the only queue there is.
// Nothing in memory matters: a process that dies here costs its rows the rest of their lease.
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { claimInTurns, openTurns, type Turns } from '../core/accounts/turns';
import { repeatWork } from '../core/process/background';
import { pauseMsAfter } from '../core/process/backoff';
import { claimRow, dueTables, lagSeconds, renewLeases, type Claim } from '../db/lease';
import { openWakeSignal, type WakeSignal } from './wake_signal';
import { openBreaker, type Breaker } from './breaker';
import type { Job, LoopParts } from './job';
import { allJobs } from './all_jobs';
import { beginStep, cutStep, runStep, type Step, type StepLimits } from './step';
import { DEADLINE_MS } from './failure_policy';

export type { Job, JobContext, LoopParts, LoopRow, Outcome } from './job';

export interface Loop {
  /** Waits a while for running steps, releases the leases, and stops. */
  stop(): Promise<void>;
  /** Seconds since the longest waiting row became due; 0 when none waits. */
  lagSeconds(): Promise<number>;
  /** ms since it last looked for work, or tried to; 0 once it stops. */
  silentMs(): number;
}

export interface LoopOptions extends StepLimits {
  /** Steps at a time in this process, and one more for an account that has none: slow steps may be all of another. */
  concurrency: number;
  /** How often leases are renewed. */
  heartbeatMs: number;
  /** How often due rows are looked for without a notification. */
  pollMs: number;
  /** How long stop() waits for steps before it aborts them. */
  graceMs: number;
  jobs: readonly Job[];
  /** Asked before each claim. */
  mayClaim(): boolean;
}

const DEFAULTS = {
  concurrency: 4,
  leaseMs: 30_000,
  heartbeatMs: 10_000,
  marginMs: 5_000,
  pollMs: 1_000,
  graceMs: 10_000,
  mayClaim: () => true,
};
const BREAKER = { threshold: 5, openMs: 30_000 };
const OUTAGE = { firstMs: 200, maxMs: 2_000 };
/** While every slot is taken, each table is probed for rows of other accounts so often. */
const PROBE_EVERY_MS = 250;

interface State {
  parts: LoopParts;
  options: LoopOptions;
  owner: string;
  jobs: Map<string, Job>;
  /** Tables that may have due rows, in the order in which they get their turn. */
  hot: Set<string>;
  running: Map<Step, Promise<void>>;
  breaker: Breaker;
  turns: Turns;
  /** Tables that are hot again when a step has ended, and when each was probed for rows of another account. */
  parked: Set<string>;
  probedAt: Map<string, number>;
  wakeSignal: WakeSignal;
  /** Aborted by stop(). */
  stopping: AbortController;
  polledAt: number;
  turnedAt: number;
}

/** Starts working in the background. A database that is away is waited for. */
export function startLoop(parts: LoopParts, options: Partial<LoopOptions> = {}): Loop {
  const state = open(parts, { ...DEFAULTS, jobs: options.jobs ?? allJobs(), ...options });
  const listener = parts.listen({ due: (table) => wake(state, table) });
  const { log } = parts;
  const failure = 'leases could not be renewed';
  const everyMs = state.options.heartbeatMs;
  const beat = repeatWork({ name: 'lease_renewal', everyMs, log, failure }, () =>
    // A connection that hangs must not cost the leases: the next beat takes another one.
    Promise.race([heartbeat(state), noAnswerAfter(everyMs * 0.9)]),
  );
  const ended = run(state);
  const close = async (): Promise<void> => {
    state.stopping.abort();
    state.wakeSignal.notify();
    await ended;
    await listener.close();
    await drain(state);
    await beat.stop();
  };
  let closed: Promise<void> | undefined;
  return {
    stop: () => (closed ??= close()),
    lagSeconds: () => lagSeconds(parts.database, [...state.jobs.keys()]),
    silentMs: () => (state.stopping.signal.aborted ? 0 : performance.now() - state.turnedAt),
  };
}

async function noAnswerAfter(ms: number): Promise<never> {
  await sleep(ms, undefined, { ref: false });
  throw new Error('the database does not answer');
}

function open(parts: LoopParts, options: LoopOptions): State {
  return {
    parts,
    options,
    owner: `${hostname()}:${process.pid}:${randomBytes(6).toString('hex')}`,
    jobs: new Map(options.jobs.map((job) => [job.table, job])),
    hot: new Set(),
    running: new Map(),
    breaker: openBreaker(BREAKER),
    turns: openTurns(),
    parked: new Set(),
    probedAt: new Map(),
    wakeSignal: openWakeSignal(),
    stopping: new AbortController(),
    polledAt: -Infinity,
    turnedAt: performance.now(),
  };
}

async function run(state: State): Promise<void> {
  const { signal } = state.stopping;
  let prepared = false;
  let failures = 0;
  while (!signal.aborted) {
    state.turnedAt = performance.now();
    try {
      if (!prepared) await prepare(state);
      prepared = true;
      await pollDueTables(state);
      await claimWork(state);
      failures = 0;
      await state.wakeSignal.wait(state.options.pollMs);
    } catch (error) {
      const outageMs = pauseMsAfter((failures += 1), OUTAGE);
      state.parts.log.warn({ err: error, retry_ms: outageMs }, 'the loop could not look for work');
      await sleep(outageMs, undefined, { signal }).catch(() => {});
    }
  }
}

async function prepare({ jobs, parts }: State): Promise<void> {
  for (const job of jobs.values()) await job.prepare?.(parts.database);
}

/** Insurance against a lost notification, and the way in for rows whose time has come or whose worker died. */
async function pollDueTables(state: State): Promise<void> {
  if (performance.now() - state.polledAt < state.options.pollMs) return;
  for (const table of await dueTables(state.parts.database, [...state.jobs.keys()])) state.hot.add(table);
  state.polledAt = performance.now();
}

/** Claims one row of each table in turn until every slot is taken or nothing is due. */
async function claimWork(state: State): Promise<void> {
  const { hot, parked, running, options, stopping } = state;
  while (running.size <= options.concurrency && !stopping.signal.aborted && options.mayClaim()) {
    state.turnedAt = performance.now();
    const [table] = hot;
    if (table === undefined) return;
    const isFull = running.size === options.concurrency;
    hot.delete(table);
    if (await startStep(state, state.jobs.get(table) as Job)) hot.add(table);
    else if (isFull) parked.add(table);
  }
}

async function startStep(state: State, job: Job): Promise<boolean> {
  const { options, breaker } = state;
  const claimedAt = performance.now();
  const found = await claimNext(state, job);
  if (!found) return false;
  const step = beginStep(job, found, claimedAt, options);
  const end = runStep(state.parts, step, options, breaker).then((nextMs) => {
    state.running.delete(step);
    for (const table of state.parked) state.hot.add(table);
    state.parked.clear();
    scheduleWake(state, job.table, nextMs);
    state.wakeSignal.notify();
  });
  state.running.set(step, end);
  return true;
}

/** The row that is due for longest, of the accounts whose turn it is. */
async function claimNext(state: State, job: Job): Promise<Claim | undefined> {
  const { running, options, turns, probedAt } = state;
  const isFull = running.size >= options.concurrency;
  if (isFull) {
    const at = performance.now();
    if (at - (probedAt.get(job.table) ?? -Infinity) < PROBE_EVERY_MS) return undefined;
    probedAt.set(job.table, at);
  }
  const busy = isFull ? [...new Set([...running.keys()].map((step) => step.claim.account))] : [];
  const claims = await claimInTurns(turns, job.table, { limit: 1, busy }, (_, passOver) => claim(state, job, passOver));
  return claims[0];
}

async function claim(state: State, { table, project, deadlineMs = DEADLINE_MS }: Job, others: string[]) {
  const { parts, options, owner, breaker } = state;
  const passOver = [...others, ...breaker.openFor(table)];
  const avoid = breaker.open(table);
  const limits = { owner, leaseMs: options.leaseMs, deadlineMs, avoid, project, passOver };
  const found = await claimRow(parts.database, table, limits);
  return found ? [found] : [];
}

/** A look that is due before the next poll. */
function scheduleWake(state: State, table: string, nextMs: number | null): void {
  if (nextMs === null || nextMs > state.options.pollMs) return;
  if (nextMs <= 0) return wake(state, table);
  setTimeout(() => wake(state, table), nextMs).unref();
}

function wake(state: State, table: string): void {
  if (!state.jobs.has(table)) return;
  state.hot.add(table);
  state.wakeSignal.notify();
}

/** Extends the leases of all running steps; those that are lost, or will be before the next beat, are aborted. */
async function heartbeat(state: State): Promise<void> {
  const { parts, options, owner } = state;
  let failed: Error | undefined;
  for (const table of new Set([...state.running.keys()].map((step) => step.job.table))) {
    const steps = [...state.running.keys()].filter((step) => step.job.table === table);
    const sentAt = performance.now();
    try {
      const held = await renewLeases(
        parts.database,
        table,
        owner,
        steps.map((step) => step.claim.lease.id),
        options.leaseMs,
      );
      for (const step of steps) extend(step, held, sentAt + options.leaseMs);
    } catch (error) {
      failed = error as Error;
      const needed = performance.now() + options.heartbeatMs + options.marginMs;
      for (const step of steps) if (step.heldUntil < needed) cutStep(step, 'overrun');
    }
  }
  if (failed) throw failed;
}

function extend(step: Step, held: Map<string, number>, until: number): void {
  const { id, fence } = step.claim.lease;
  if (held.get(id) === fence) step.heldUntil = until;
  else cutStep(step, 'lost');
}

async function drain({ running, options, parts }: State): Promise<void> {
  const all = Promise.all(running.values());
  await Promise.race([all, sleep(options.graceMs, undefined, { ref: false })]);
  for (const step of running.keys()) cutStep(step, 'stopping');
  await Promise.race([all, sleep(options.marginMs * 2, undefined, { ref: false })]);
  if (running.size)
    parts.log.warn(
      { steps: running.size },
      'stopped with steps still running; their rows are taken up when the leases end',
    );
}
