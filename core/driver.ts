// What every driver of a resource has in common. A driver moves one kind of thing in the outside world. It gets plain
// values and is called again with the same values after a crash. It knows no rows, no HTTP and no tenants.

/** Where the thing is. `name` derives from the id of its owner, so creating twice meets the same object. */
export interface ExternalRef {
  driver: string;
  name: string;
}

/** What should be. `ref` is there once an `ensure` of this resource has succeeded and its answer was stored. */
export interface Desired<S> {
  id: string;
  spec: S;
  ref?: ExternalRef;
}

/**
 * What is.
 * - absent: nothing of that name.
 * - foreign: something has that name but not our mark. It is never touched.
 * - present: ours; `upToDate` says whether `ensure` would have nothing to do, `diff` what differs.
 */
export type Observation<O> =
  | { state: 'absent' }
  | { state: 'foreign'; detail: string }
  | { state: 'present'; upToDate: boolean; observed: O; diff?: string };

/** There, ours, and as it should be. */
export function isUpToDate<O>(observation: Observation<O>): observation is Present<O> {
  return observation.state === 'present' && observation.upToDate;
}

export type Present<O> = Extract<Observation<O>, { state: 'present' }>;

/** `deadline` is a time in ms since the epoch; `signal` is aborted then at the latest. */
export interface DriverContext {
  signal: AbortSignal;
  deadline: number;
}

/** What the driver can do on this host. `reason` says in one line why it is not healthy. */
export interface Fingerprint {
  healthy: boolean;
  reason: string | null;
  facts: Record<string, string | number | boolean>;
}

/** One call may be a part of the way: `requeueMs` asks for the next call after that time. */
export interface Ensured {
  ref: ExternalRef;
  requeueMs?: number;
  /** What the rest waits for, as a sentence for users: it works as it was before, and is tried again now and then. */
  waiting?: string;
}

/** A thing that bears our mark, for the sweep that looks for orphans. */
export interface Owned {
  ref: ExternalRef;
  owner_id: string;
}

export interface ResourceDriver<S, O> {
  readonly name: string;

  /** Never throws: a driver that cannot work here says so. */
  fingerprint(ctx: DriverContext): Promise<Fingerprint>;

  /** Observes, never modifies. */
  observe(r: Desired<S>, ctx: DriverContext): Promise<Observation<O>>;

  /**
   * One bounded idempotent step from what was observed to what is desired. May be killed at any point; the next call
   * goes on from there. Throws DriverError `conflict` for a foreign object.
   */
  ensure(r: Desired<S>, obs: Observation<O>, ctx: DriverContext): Promise<Ensured>;

  /**
   * Removes the thing and all its left-overs. Absent is success; so is foreign, which is left alone. Tear-down has
   * ended when this resolves, not when `observe` says absent: left-overs of an interrupted call count too.
   */
  remove(r: Desired<S>, obs: Observation<O>, ctx: DriverContext): Promise<void>;

  /**
   * Everything that bears our mark, left-overs of interrupted calls included. Orphans go by `remove` of their owner_id.
   */
  list(ctx: DriverContext): AsyncIterable<Owned>;
}

export type DriverErrorReason = 'transient' | 'conflict' | 'invalid' | 'capacity' | 'unauthorized' | 'unsupported';

/**
 * The one error that leaves a driver. `invalid` and `unsupported` are not worth a retry with the same values.
 * The message may be shown to a customer: it names no path of the host. What the host said is the `cause`.
 */
export class DriverError extends Error {
  override readonly name = 'DriverError';

  constructor(
    readonly reason: DriverErrorReason,
    message: string,
    readonly retryAfterMs?: number,
  ) {
    super(message);
  }
}

/** For the copy or the removal of a tree, which must not begin anew with each step of a job: it goes on meanwhile. */
export const unboundedContext = (): DriverContext => ({ deadline: Infinity, signal: new AbortController().signal });

/** A context that ends after `milliseconds`, or earlier when `parent` is aborted. */
export function driverContext(milliseconds: number, parent?: AbortSignal): DriverContext {
  const end = AbortSignal.timeout(milliseconds);
  return { deadline: Date.now() + milliseconds, signal: parent ? AbortSignal.any([end, parent]) : end };
}

/** Throws DriverError `transient` once the context has ended. Called between steps. */
export function checkpoint(ctx: DriverContext): void {
  if (ctx.signal.aborted || Date.now() >= ctx.deadline)
    throw new DriverError('transient', 'The step did not finish in time.');
}

/**
 * Waits for `work`, but no longer than until the signal is aborted: then it throws DriverError `transient`, and the
 * work goes on in the background. No listener stays behind on a signal that outlives many of these calls.
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

/** Runs `work`; any other error than a DriverError that leaves it becomes one, by its errno. */
export async function asDriverErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof DriverError ? error : toDriverError(error);
  }
}

/** No room on a file system of the host: neither a mistake of the user nor worth an early retry. */
export function diskFull(): DriverError {
  return new DriverError('capacity', 'The disk of the host is full. An operator has to free space.');
}

function toDriverError(error: unknown): DriverError {
  const code = String((error as NodeJS.ErrnoException).code ?? (error as Error).name);
  if (code === 'ENOSPC' || code === 'EDQUOT') return Object.assign(diskFull(), { cause: error });
  return Object.assign(new DriverError(reasonByErrno[code] ?? 'transient', `The host answered ${code}.`), {
    cause: error,
  });
}
