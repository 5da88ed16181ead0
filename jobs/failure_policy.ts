// Consequences of a step's outcome: the failure policy of docs/decisions/rules.md §3.
import { toSentence } from '../core/sentence';
import { DriverError, isEngineAway, StillRunning, type DriverErrorReason } from '../core/driver';
import { pauseMsAfter } from '../core/process/backoff';
import type { Claim, WriteBack } from '../db/lease';
import { jittered, type Job, type Outcome } from './job';

const BACKOFF = { firstMs: 200, maxMs: 60_000 };
const LOOK_AGAIN_MS = 5_000;
/** Ends the reason of a row that waits for an engine. */
const WAITING = 'The platform waits for it and goes on by itself.';
/** Errors that are not retried: the same values would fail again. */
const FINAL: ReadonlySet<DriverErrorReason> = new Set(['invalid', 'unsupported', 'conflict']);

export const DEADLINE_MS = 600_000;

/** The write-back of an outcome other than `gone`. */
export function writeBackOf(outcome: Exclude<Outcome, { kind: 'gone' }>, row: Claim['row']): WriteBack {
  const { nextMs } = outcome;
  const { status_reason: reason = row.status_reason } = outcome.columns;
  const isOver = hasWaited(row) && reason === row.status_reason;
  const columns = isOver ? { ...outcome.columns, status_reason: null } : outcome.columns;
  if (outcome.kind === 'failed') return { ending: 'gave_up', columns, nextMs, error: outcome.reason };
  return { ending: outcome.kind === 'settled' ? 'done' : 'going', columns, nextMs, error: null };
}

/**
 * The write-back of a failed step: another try after a growing pause, or `failed` with a reason for users.
 * Tear-down, and kinds without the status `failed`, are tried for ever.
 * @param claim as it was taken; `deadlineInMs` counted from now
 */
export function failureWriteBack(error: unknown, job: Job, claim: Claim): WriteBack {
  const known = error instanceof DriverError ? error : null;
  if (isEngineAway(error)) return waitForEngine(error, claim);
  const internal =
    error instanceof Error ? [error.message, reasonBehind(error)].filter(Boolean).join(': ') : String(error);
  const final = known !== null && FINAL.has(known.reason);
  const late = claim.deadlineInMs <= 0 && !(error instanceof StillRunning);
  if (!(final || late) || !mayFail(job, claim)) {
    const nextMs = Math.max(known?.retryAfterMs ?? 0, final ? BACKOFF.maxMs : backoffMs(claim.row.attempts));
    return { ending: 'failed', columns: {}, nextMs, error: internal };
  }
  const columns = { status: 'failed', status_reason: reasonFor(known, job, final ? 'at_once' : 'in_time') };
  return { ending: 'gave_up', columns, nextMs: job.watchFailedMs ?? null, error: internal };
}

/** How long it takes is not counted: neither as attempts, nor in the time after which a row is given up. */
function waitForEngine(error: DriverError, { row }: Claim): WriteBack {
  const nextMs = Math.max(error.retryAfterMs ?? 0, jittered(LOOK_AGAIN_MS));
  // What has failed for good is only watched, and keeps its reason.
  if (row.status === 'failed') return { ending: 'failed', columns: {}, nextMs, error: error.message };
  const isShown = row.deleted_at === null && (row.status_reason === null || hasWaited(row));
  const columns = isShown ? { status_reason: waitingReason(error) } : {};
  return { ending: 'waiting', columns, nextMs, error: error.message };
}

/** As a sentence for users. */
export function waitingReason(error: DriverError): string {
  return `${toSentence(error.message)} ${WAITING}`;
}

/** What `waitingReason` was made of; null of any other reason. */
export function awayMessage(reason: string): string | null {
  return isWaitingReason(reason) ? reason.slice(0, -WAITING.length).trimEnd() : null;
}

/** Whether the last step on the row found an engine away. Others may show the same reason, as that of their parts. */
export function hasWaited({ status_reason, last_error }: Claim['row']): boolean {
  return last_error != null && isWaitingReason(status_reason ?? null);
}

function isWaitingReason(reason: string | null): boolean {
  return reason?.endsWith(WAITING) ?? false;
}

/** 0.2 s doubled with every attempt up to 60 s, half to one and a half times of it at random. */
export function backoffMs(attempts: number): number {
  return Math.round(pauseMsAfter(attempts + 1, BACKOFF) * (0.5 + Math.random()));
}

function mayFail(job: Job, { row }: Claim): boolean {
  if (row.deleted_at !== null || !job.states?.all.includes('failed')) return false;
  return row.status === 'failed' || job.states.predecessors('failed').includes(row.status as string);
}

// Messages of DriverErrors are written for users; messages of other errors may expose internals.
function reasonFor(known: DriverError | null, job: Job, when: 'at_once' | 'in_time'): string {
  const text = toSentence(known?.message ?? 'The platform met an internal error.');
  if (when === 'at_once') return text;
  const minutes = Math.max(1, Math.round((job.deadlineMs ?? DEADLINE_MS) / 60_000));
  return `The platform gave up after ${minutes} ${minutes === 1 ? 'minute' : 'minutes'} of retries. ${text}`;
}

function reasonBehind(error: Error): string | null {
  return error.cause instanceof Error ? error.cause.message : null;
}
