// A change that failed does not end a database: its server goes on as before, or is tried again, and the reason says
// what failed. Only one that was never there is `failed`.
import { DriverError, StillRunning } from '../../../core/driver';
import { Problem } from '../../../core/errors';
import { toSentence } from '../../../core/sentence';
import { LeaseLost, progressing, type JobContext, type LoopRow, type Outcome, type Values } from '../../job';
import { missingDataReason } from './missing_data';
import { isPastDeadline, requireEngineDriver, type DatabaseRow } from './row';

/** Pauses of a promotion that fails: the replica has the data, and has to become a database. */
const PROMOTE_AGAIN_MS = 60_000;
/** A start that is only slow is not reported. */
const REPORTED_AFTER_ATTEMPTS = 2;
const AGAIN = 'The platform tries again.';
const UNFINISHED = 'The last change of the database is not complete yet. The platform goes on with it.';

/** What failed, by the status that the row had. A server that does not stop is never `stopped`. */
const CHANGES: Partial<Record<DatabaseRow['status'], string>> = {
  updating: 'The change of the database could not be applied.',
  restarting: 'The database could not be restarted.',
  starting: 'The database could not be started.',
};

/** The outcome of a step that threw `error`. @throws error where it is to be tried again, or the database is failed */
export async function afterFailure(row: DatabaseRow, error: unknown, ctx: JobContext): Promise<Outcome> {
  // A Problem is an outage of the platform's own database.
  const isOurs = error instanceof LeaseLost || error instanceof StillRunning || error instanceof Problem;
  if (ctx.signal.aborted || isOurs) throw error;
  const columns = isFinal(row, error) ? await columnsAfter(row, toSentence(messageOf(error)), ctx) : null;
  if (columns === null) {
    const isFailed = isFinal(row, error) && (row.status === 'provisioning' || row.status === 'failed');
    // Of a restore or an upgrade at once.
    const isAwaited = row.restoring_from || row.wanted_version || (row.restore_from && !row.observed?.begun);
    if (isFailed || (!isAwaited && row.attempts < REPORTED_AFTER_ATTEMPTS)) throw error;
    return recordFailure(error, ctx, { columns: { observed: { ...row.observed, unfinished: true } } });
  }
  ctx.log.warn({ err: error, status: row.status }, 'a change of a database failed');
  return progressing(columns.status === undefined ? PROMOTE_AGAIN_MS : 0, columns);
}

/** A change that takes longer than its time leaves the database to the owner, and goes on. */
export function withinDeadline(row: DatabaseRow, outcome: Outcome): Outcome {
  if (outcome.kind !== 'progressing' || outcome.columns.status !== undefined || !isPastDeadline(row)) return outcome;
  if (row.restoring_from || row.wanted_version || !(row.status === 'restoring' || row.status in CHANGES))
    return outcome;
  const { observed = row.observed, ...columns } = outcome.columns;
  const change = CHANGES[row.status] ?? UNFINISHED;
  const status_reason = [change, columns.status_reason ?? row.status_reason].filter(Boolean).join(' ');
  return {
    ...outcome,
    columns: {
      ...columns,
      status_reason,
      status: 'available',
      observed: { ...(observed as object), unfinished: true },
    },
  };
}

/** Writes the reason into the row, unless the work only goes on. `again`: what follows, as a sentence. @throws error */
export async function recordFailure(
  error: unknown,
  ctx: JobContext,
  { columns = {}, again = AGAIN }: { columns?: Values; again?: string } = {},
): Promise<never> {
  if (error instanceof DriverError && !(error instanceof StillRunning) && !ctx.signal.aborted)
    await ctx.record({ status_reason: retryReasonOf(error, again), ...columns });
  throw error;
}

/** What the owner reads of a failure after which work is tried again. `again`: what follows, as a sentence. */
export function retryReasonOf(error: DriverError, again = AGAIN): string {
  return `${toSentence(error.message)} ${again}`;
}

/** Records failures of the work from the third attempt on. @throws the error of the work */
export async function recordingFailures<T>(row: LoopRow, ctx: JobContext, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (row.deleted_at !== null || row.attempts < REPORTED_AFTER_ATTEMPTS) throw error;
    return recordFailure(error, ctx);
  }
}

/** What follows a failure that is final; null: the database is failed. */
async function columnsAfter(row: DatabaseRow, reason: string, ctx: JobContext): Promise<Values | null> {
  const retried = { observed: { ...row.observed, unfinished: true } };
  if (row.status === 'upgrading' && row.wanted_version) {
    const failure = `The upgrade to ${row.wanted_version} failed. ${reason}`;
    const status_reason = `${failure} The database still runs version ${row.engine_version}.`;
    return { status: 'available', wanted_version: null, status_reason };
  }
  if (row.status === 'restoring' && row.restoring_from) {
    const isThere = await requireEngineDriver(ctx, row).hasData(row.server_id);
    const data = isThere ? 'The data are as before.' : missingDataReason(row);
    const status_reason = `The restore failed. ${reason} ${data}`;
    return { status: 'available', restoring_from: null, status_reason };
  }
  const change = CHANGES[row.status] ?? (row.status === 'restoring' || row.status === 'upgrading' ? UNFINISHED : null);
  if (change !== null) return { ...retried, status: 'available', status_reason: `${change} ${reason} ${AGAIN}` };
  const isPromoted = row.status === 'provisioning' && row.server_id !== row.id;
  return isPromoted ? { ...retried, status_reason: `The replica could not be promoted. ${reason} ${AGAIN}` } : null;
}

function isFinal(row: DatabaseRow, error: unknown): boolean {
  const reason = error instanceof DriverError ? error.reason : null;
  // Each try of a restore or an upgrade may take the server away: a disk that is full is not waited for.
  const isStopping = row.restoring_from !== null || row.wanted_version !== null;
  const isCertain = reason === 'invalid' || reason === 'unsupported' || reason === 'conflict';
  return isCertain || (isStopping && reason === 'capacity') || isPastDeadline(row);
}

function messageOf(error: unknown): string {
  return error instanceof DriverError ? error.message : 'The platform met an internal error.';
}
