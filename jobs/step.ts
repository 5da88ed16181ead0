// One step on one claimed row: bounded in time, judged, written back by the holder of the lease alone.
import { setTimeout as sleep } from 'node:timers/promises';
import { Problem } from '../core/errors';
import { DriverError } from '../core/driver';
import { deletedState } from '../models/base/bin';
import { recordEvent } from '../models/projects/activity';
import type { Session } from '../db/control_database';
import { purgeRow, recordColumns, releaseRow, settleRow, type Claim, type WriteBack } from '../db/lease';
import type { Breaker } from './breaker';
import { LeaseLost, progressing, settled, type Job, type JobContext, type LoopParts, type Outcome } from './job';
import { failureWriteBack, hasWaited, writeBackOf } from './failure_policy';

export interface Step {
  job: Job;
  claim: Claim;
  /** Aborted when the time of the step is over, the lease is lost, or the loop stops. */
  abort: AbortController;
  /** When the lease ends for sure, on the clock of performance.now(). */
  heldUntil: number;
  startedAt: number;
  /** Why it was aborted. */
  cut: 'overrun' | 'lost' | 'stopping' | null;
}

export interface StepLimits {
  leaseMs: number;
  /** Part of the lease that a step must not use: the time it may take to end after it was aborted. */
  marginMs: number;
}

const OUTAGE_RETRY_MS = 500;
const REFERENCED = '23503';

/** A step on a row that was claimed at `claimedAt`. */
export function beginStep(job: Job, claim: Claim, claimedAt: number, limits: StepLimits): Step {
  return {
    job,
    claim,
    abort: new AbortController(),
    heldUntil: claimedAt + limits.leaseMs,
    startedAt: claimedAt,
    cut: null,
  };
}

export function cutStep(step: Step, why: NonNullable<Step['cut']>): void {
  step.cut ??= why;
  step.abort.abort();
}

/**
 * Runs the step to its end and writes back. Never throws for what the job or the database did.
 * @returns milliseconds until the row is due again, null when it is not, or not ours to know
 */
export async function runStep(
  parts: LoopParts,
  step: Step,
  limits: StepLimits,
  breaker: Breaker,
): Promise<number | null> {
  const log = parts.log.child({ table: step.job.table, id: step.claim.row.id, fence: step.claim.lease.fence });
  try {
    const result = await attempt(parts, step, limits, log);
    if (step.cut === 'lost' || result instanceof LeaseLost) return logLeaseLost(log);
    if (step.cut === 'stopping' && result instanceof Error) return await releaseLease(parts, step);
    return await finish(parts, step, result, log, breaker);
  } catch (error) {
    log.error(
      { err: error },
      'the end of a step could not be written; the row is taken up again when its lease has ended',
    );
    return null;
  }
}

type Log = LoopParts['log'];

async function attempt(parts: LoopParts, step: Step, limits: StepLimits, log: Log): Promise<Outcome | Error> {
  const stepMs = step.job.stepMs ?? limits.leaseMs - limits.marginMs;
  const timer = setTimeout(() => cutStep(step, 'overrun'), stepMs);
  const hung = hanging(step, limits);
  try {
    return await Promise.race([stepOf(step, contextOf(parts, step, stepMs, log)), hung.error]);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    clearTimeout(timer);
    hung.clear();
  }
}

/** A deleted row is torn down unless the bin keeps it. */
async function stepOf({ job, claim }: Step, ctx: JobContext): Promise<Outcome> {
  const { row } = claim;
  if (row.deleted_at === null || row.deleted_at === undefined) return job.reconcile(row, ctx);
  const state = await deletedState(ctx.sql, job.table, row.id);
  if (state === 'purged') return job.reconcile(row, ctx);
  // Restored since it was claimed: it is due again.
  if (state === 'restored') return progressing(0);
  return (await job.park?.(row, ctx)) ?? settled();
}

// A step that ignores its abort signal is abandoned: its slot is needed, and the fence keeps it from writing.
function hanging(step: Step, { leaseMs, marginMs }: StepLimits): { error: Promise<Error>; clear(): void } {
  let timer: NodeJS.Timeout | undefined;
  const error = new Promise<Error>((resolve) => {
    const later = (): void =>
      void (timer = setTimeout(
        () => resolve(new DriverError('transient', 'The host did not respond in time.', leaseMs)),
        marginMs,
      ));
    step.abort.signal.addEventListener('abort', later, { once: true });
  });
  return { error, clear: () => clearTimeout(timer) };
}

function contextOf(parts: LoopParts, step: Step, stepMs: number, log: Log): JobContext {
  const { database: sql, config, secrets, drivers, probes } = parts;
  return {
    ...{ sql, config, secrets, drivers, probes, log },
    signal: step.abort.signal,
    deadline: Date.now() + stepMs,
    gaveUp: step.claim.row.status === 'failed' && step.claim.deadlineInMs <= 0,
    async record(columns) {
      if (!(await recordColumns(sql, step.claim.lease, columns))) throw new LeaseLost();
    },
  };
}

async function finish(
  parts: LoopParts,
  step: Step,
  result: Outcome | Error,
  log: Log,
  breaker: Breaker,
): Promise<number | null> {
  const { row } = step.claim;
  if (result instanceof Error) return fail(parts, step, result, log, breaker);
  breaker.succeeded(step.job.table, row.driver);
  try {
    if (result.kind !== 'gone') return await write(parts, step, writeBackOf(result, row), log);
    await retryDuringOutage(step, () => purgeRow(parts.database, step.claim.lease));
    log.info('torn down');
    return null;
  } catch (error) {
    if (isOutage(error)) throw error;
    return fail(parts, step, error as Error, log, breaker);
  }
}

async function fail(parts: LoopParts, step: Step, error: Error, log: Log, breaker: Breaker): Promise<number | null> {
  const { claim, job } = step;
  const transient = error instanceof DriverError && error.reason === 'transient';
  if (transient) breaker.failed(job.table, claim.row.driver, claim.row.id, claim.account);
  const back = failureWriteBack(error, job, {
    ...claim,
    deadlineInMs: claim.deadlineInMs - (performance.now() - step.startedAt),
  });
  report(error, back, claim, log);
  return write(parts, step, back, log);
}

function report(error: Error, { ending, nextMs }: WriteBack, { row }: Claim, log: Log): void {
  const fields = { err: error, attempts: row.attempts + 1, retry_ms: nextMs };
  // Still referenced: the rows that hold it go first.
  if ((error as { code?: string }).code === REFERENCED) return log.debug(fields, 'not yet');
  if (error instanceof DriverError || isOutage(error))
    return log.warn(fields, ending === 'gave_up' ? 'failed' : 'to be tried again');
  log.error(fields, 'a step met an unexpected error');
}

async function write(parts: LoopParts, step: Step, back: WriteBack, log: Log): Promise<number | null> {
  const { job } = step;
  const written = await retryDuringOutage(step, () =>
    parts.database.transaction((session) => settleAndRecord(session, step, back, job)),
  );
  if (!written) return logLeaseLost(log);
  return written.changed ? 0 : back.nextMs;
}

/** Writes the row back and records a change of status in the activity log of the project. */
async function settleAndRecord(
  session: Session,
  { claim }: Step,
  back: WriteBack,
  job: Job,
): ReturnType<typeof settleRow> {
  const written = await settleRow(session, claim.lease, back, job.states ?? null);
  const isOwn = !written?.changed && written?.status === back.columns.status;
  const isQuiet = job.quiet || job.isQuiet?.(claim.row);
  if (written?.status && written.status !== claim.row.status && !isQuiet && (isOwn || !job.movedElsewhere))
    await recordEvent(session, claim.lease.table, claim.row, written.status);
  if (written && !isQuiet) await recordWaiting(session, claim, back);
  return written;
}

/** That a resource waits for an engine that is away, and that it goes on. */
async function recordWaiting(session: Session, { lease, row }: Claim, { ending, columns }: WriteBack): Promise<void> {
  const waited = hasWaited(row);
  if (ending === 'waiting' && columns.status_reason && !waited) await recordEvent(session, lease.table, row, 'waiting');
  if (waited && columns.status_reason === null) await recordEvent(session, lease.table, row, 'resumed');
}

/** Tries again while the database is away, as long as the row is surely ours. */
async function retryDuringOutage<T>(step: Step, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isOutage(error) || performance.now() + OUTAGE_RETRY_MS > step.heldUntil) throw error;
      await sleep(OUTAGE_RETRY_MS);
    }
  }
}

async function releaseLease(parts: LoopParts, step: Step): Promise<null> {
  await retryDuringOutage(step, () => releaseRow(parts.database, step.claim.lease));
  return null;
}

function logLeaseLost(log: Log): null {
  log.warn('another worker has the row; the result of this step is void');
  return null;
}

function isOutage(error: unknown): boolean {
  return error instanceof Problem && error.code === 'service_unavailable';
}
