// Common interface of resource drivers. A driver manages one kind of external object. Its parameters are plain values,
// and calls are repeated with the same values after a crash. It does not know rows, HTTP and tenants.
import { failureTextOf } from './log/failure_text';

/** Reference to the object. `name` derives from the id of its owner, so a repeated creation finds the same object. */
export interface ExternalRef {
  driver: string;
  name: string;
}

/** Desired state. `ref` is set once an `ensure` of this resource has succeeded and its result was stored. */
export interface Desired<S> {
  id: string;
  spec: S;
  ref?: ExternalRef;
}

/**
 * Observed state.
 * - absent: no object of that name.
 * - foreign: an object of that name without the platform's mark. It is never touched.
 * - present: owned; `upToDate` says whether `ensure` would change nothing, `diff` describes the difference.
 */
export type Observation<O> =
  | { state: 'absent' }
  | { state: 'foreign'; detail: string }
  | { state: 'present'; upToDate: boolean; observed: O; diff?: string };

/** Present and up to date. */
export function isUpToDate<O>(observation: Observation<O>): observation is Present<O> {
  return observation.state === 'present' && observation.upToDate;
}

type Present<O> = Extract<Observation<O>, { state: 'present' }>;

/** `deadline` is in ms since the epoch; `signal` is aborted at the deadline or earlier. */
export interface DriverContext {
  signal: AbortSignal;
  deadline: number;
  /** How long a remote may be silent before the driver gives it up. Default: that of the driver. */
  stallMs?: number;
}

/** Capabilities of the driver on this host. `reason` explains in one line why it is not healthy. */
export interface Fingerprint {
  healthy: boolean;
  reason: string | null;
  facts: Record<string, string | number | boolean>;
}

/** A call may complete only a part of the work: `requeueMs` requests the next call after that time. */
export interface Ensured {
  ref: ExternalRef;
  requeueMs?: number;
  /**
   * The pending condition, as a sentence for users: the resource keeps its previous state, and the change is retried.
   */
  waiting?: string;
}

/** An owned object, for the orphan sweep. */
export interface Owned {
  ref: ExternalRef;
  owner_id: string;
}

export interface ResourceDriver<S, O> {
  readonly name: string;

  /** Never throws: a driver that cannot work here is reported as unhealthy. */
  fingerprint(ctx: DriverContext): Promise<Fingerprint>;

  /** Read-only. */
  observe(r: Desired<S>, ctx: DriverContext): Promise<Observation<O>>;

  /**
   * One bounded idempotent step from the observed to the desired state. May be killed at any point; the next call
   * continues. Throws DriverError `conflict` for a foreign object.
   */
  ensure(r: Desired<S>, obs: Observation<O>, ctx: DriverContext): Promise<Ensured>;

  /**
   * Removes the object and its remains. Absent is success; so is foreign, which is kept. The removal is complete when
   * this resolves, not when `observe` returns absent: remains of an interrupted call count too.
   */
  remove(r: Desired<S>, obs: Observation<O>, ctx: DriverContext): Promise<void>;

  /** All owned objects, including remains of interrupted calls. Orphans are removed by `remove` with their owner_id. */
  list(ctx: DriverContext): AsyncIterable<Owned>;
}

export type DriverErrorReason = 'transient' | 'conflict' | 'invalid' | 'capacity' | 'unauthorized' | 'unsupported';

/**
 * The only error that a driver throws. `invalid` and `unsupported` must not be retried with the same values. The
 * message may be shown to customers: it contains no host paths. The `cause` is the error of the host.
 */
export class DriverError extends Error {
  override readonly name = 'DriverError';
  /** See `EngineAway`. */
  readonly engineAway: boolean = false;

  constructor(
    readonly reason: DriverErrorReason,
    message: string,
    readonly retryAfterMs?: number,
  ) {
    super(message);
  }
}

/**
 * A program of the operator that the resource is made by, such as a cluster or a name server, does not answer, or fails
 * whatever it is asked. It is no fault of the resource, which waits for it without a limit, and says so.
 */
export class EngineAway extends DriverError {
  override readonly engineAway = true;

  constructor(message: string, retryAfterMs?: number) {
    super('transient', message, retryAfterMs);
  }
}

export function isEngineAway(error: unknown): error is DriverError {
  return error instanceof DriverError && error.engineAway;
}

/**
 * Work goes on beyond the call that began or joined it. It is no failure, and the time for retries does not count for
 * it.
 */
export class StillRunning extends DriverError {
  constructor(message = 'The operation is still running.') {
    super('transient', message, 2_000);
  }
}

/** For copying or removing a tree, which must not restart with each job step: it continues in the background. */
export const unboundedContext = (): DriverContext => ({ deadline: Infinity, signal: new AbortController().signal });

/** A context that expires after `milliseconds`, or earlier when `parent` is aborted. */
export function driverContext(milliseconds: number, parent?: AbortSignal): DriverContext {
  const end = AbortSignal.timeout(milliseconds);
  return { deadline: Date.now() + milliseconds, signal: parent ? AbortSignal.any([end, parent]) : end };
}

/** Throws DriverError `transient` once the context has expired. Called between steps. */
export function checkpoint(ctx: DriverContext): void {
  if (ctx.signal.aborted || Date.now() >= ctx.deadline)
    throw new DriverError('transient', 'The step did not finish in time.');
}

/**
 * Waits for `work`, until the signal is aborted: it then throws DriverError `transient`, and the work continues in the
 * background. Leaves no listener on a long-lived signal.
 */
export function untilAborted<T>(
  signal: AbortSignal,
  work: Promise<T> | T,
  timeout = new DriverError('transient', 'The step did not finish in time.'),
): Promise<T> {
  const listening = new AbortController();
  const end = new Promise<never>((_, reject) => {
    if (signal.aborted) return reject(timeout);
    signal.addEventListener('abort', () => reject(timeout), { once: true, signal: listening.signal });
  });
  return Promise.race([work, end]).finally(() => listening.abort());
}

const reasonByErrno: Record<string, DriverErrorReason> = {
  EMFILE: 'capacity',
  EFBIG: 'invalid',
  ENAMETOOLONG: 'invalid',
  EACCES: 'unauthorized',
  EPERM: 'unauthorized',
  ENOSYS: 'unsupported',
};

/** Runs `work` and converts errors other than DriverError, by their errno. */
export async function asDriverErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof DriverError ? error : toDriverError(error);
  }
}

/** A file system of the host is full: neither an error of the user nor worth an early retry. */
export function diskFull(): DriverError {
  return new DriverError('capacity', 'The disk of the host is full. An operator has to free space.');
}

/** Whether a call failed since a file system, or a quota on it, is full. */
export function isDiskFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes(String((error as NodeJS.ErrnoException).code));
}

/** Whether a program says so, in the words of strerror(3) or as Node names it. */
export function saysDiskFull(output: string): boolean {
  return /No space left on device|Disk quota exceeded|ENOSPC|EDQUOT/i.test(output);
}

function toDriverError(error: unknown): DriverError {
  // Of a PostgreSQL server: its owner reads it.
  const { severity, message } = error as { severity?: string; message: string };
  if (severity !== undefined) {
    const failure = new DriverError('transient', `The server reported: ${failureTextOf(message)}`);
    return Object.assign(failure, { cause: error });
  }
  if (isDiskFull(error)) return Object.assign(diskFull(), { cause: error });
  const code = String((error as NodeJS.ErrnoException).code ?? (error as Error).name);
  return Object.assign(new DriverError(reasonByErrno[code] ?? 'transient', `The host reported the error ${code}.`), {
    cause: error,
  });
}
