// The objects of a collection, kept up to date: a list, then watches that go on where the one before ended, for ever.
import { driverContext, type DriverError } from '../../../core/driver';
import type { Connection } from './connection';
import { hasCode, KubernetesError } from './failure';
import { listResources } from './list';
import { backoff, pause } from './pause';
import type { KubernetesObject, ListScope, ResourceType } from './resource_type';
import { watchObjects, type WatchEvent, type WatchOptions } from './watch';

/** Called one after the other. What they throw is given to `failed`, and the following goes on. */
export interface FollowHandler<T> {
  /** New, or another than before. */
  changed?(object: T, before: T | undefined): void;
  /** The last state that was observed. */
  removed?(object: T): void;
  /** The objects are those of the cluster now: after a first list, and after each interruption. */
  synchronized?(): void;
  /** The objects may be out of date from now on. Called once for each attempt that fails. */
  failed?(error: Error): void;
}

export interface Followed<T> {
  /** By uid, without `metadata.managedFields`. */
  readonly objects: ReadonlyMap<string, T>;
  /** ms since the epoch since when the objects may be out of date; null while a watch is open. */
  readonly outdatedSince: number | null;
  /**
   * By the monotonic clock: what the cluster had then is in `objects`. The API server has said something since: a list,
   * the begin of a watch, an event or a bookmark. A watch that is merely open proves nothing, its network may be away.
   */
  readonly provenAt: number;
  /** Begins the watch anew, on another connection, for a proof that is newer. Once a second at most. */
  renew(): void;
  /** Resolves once the signal is aborted and nothing is under way. Never rejects. */
  readonly ended: Promise<void>;
}

const LIST_MS = 120_000;
const RETRY_MS_FIRST = 250;
/** Routes must follow pods within seconds: after an outage nobody waits longer than this. */
const RETRY_MS_MAX = 5_000;
/** Of what a server that has too much to do may ask for. */
const TOLD_MS_MAX = 60_000;
/** After a watch that ends sooner the next one waits longer, as after one that was refused. */
const WATCH_MS_MIN = 1_000;
const RENEWED_MS_MIN = 1_000;
/** After the begin of a watch, events that were missed before are on their way for so long. */
const BEGUN_MS = 500;

interface State<T> {
  objects: Map<string, T>;
  outdatedSince: number | null;
  /** Of the last watch, by the monotonic clock; Infinity while it is not open. */
  openedAt: number;
  /** Of the last watch too, when it is over. */
  begunAt: number;
  /** When a list was asked for, or an event or a bookmark has come last. */
  saidAt: number;
  renewedAt: number;
  /** Ends the watch that is open; null: none is. */
  renewal: AbortController | null;
  /** Null: list first. */
  resourceVersion: string | null;
}

interface Following<T extends KubernetesObject> {
  connection: Connection;
  of: ResourceType<T>;
  scope: ListScope;
  state: State<T>;
  handler: Required<FollowHandler<T>>;
  signal: AbortSignal;
  options: WatchOptions;
}

export function followObjects<T extends KubernetesObject>(
  connection: Connection,
  of: ResourceType<T>,
  scope: ListScope,
  handler: FollowHandler<T>,
  signal: AbortSignal,
  options: WatchOptions = {},
): Followed<T> {
  const state: State<T> = {
    objects: new Map(),
    outdatedSince: Date.now(),
    openedAt: Infinity,
    ...{ begunAt: -Infinity, saidAt: -Infinity, renewedAt: -Infinity, renewal: null },
    resourceVersion: null,
  };
  const ended = followUntilAborted({ connection, of, scope, state, handler: guard(handler), signal, options });
  return {
    objects: state.objects,
    get outdatedSince() {
      return state.outdatedSince;
    },
    get provenAt() {
      const { begunAt, saidAt } = state;
      return performance.now() - begunAt >= BEGUN_MS ? Math.max(begunAt, saidAt) : saidAt;
    },
    renew() {
      const now = performance.now();
      if (state.renewal === null || now - state.renewedAt < RENEWED_MS_MIN) return;
      state.renewedAt = now;
      state.renewal.abort();
    },
    ended,
  };
}

async function followUntilAborted<T extends KubernetesObject>(following: Following<T>): Promise<void> {
  const { state, signal } = following;
  const retry = backoff(RETRY_MS_FIRST, RETRY_MS_MAX);
  while (!signal.aborted) {
    state.openedAt = Infinity;
    const ended = await followOnce(following);
    state.outdatedSince ??= Date.now();
    const hasLasted = performance.now() - state.openedAt >= WATCH_MS_MIN;
    if (hasLasted) retry.reset();
    if (signal.aborted || ended === 'renewed' || (hasLasted && ended === 'by the server')) continue;
    const toldMs = ended === 'by the server' ? 0 : Math.min(ended.retryAfterMs, TOLD_MS_MAX);
    await pause(Math.max(retry.next(), toldMs), signal);
  }
}

async function followOnce<T extends KubernetesObject>(
  following: Following<T>,
): Promise<'by the server' | 'renewed' | { retryAfterMs: number }> {
  const { state, handler, signal } = following;
  try {
    if (state.resourceVersion === null) await synchronize(following);
    return await watchOnce(following);
  } catch (error) {
    if (hasCode(error, 'expired')) state.resourceVersion = null;
    else if (!signal.aborted) handler.failed(error as Error);
    return { retryAfterMs: (error as Partial<DriverError>).retryAfterMs ?? 0 };
  }
}

/** A list in the place of what was known: what is not in it was removed meanwhile. */
async function synchronize<T extends KubernetesObject>(following: Following<T>): Promise<void> {
  const { connection, of, scope, state, handler, signal } = following;
  const askedAt = performance.now();
  const { items, resourceVersion } = await listResources(connection, of, scope, driverContext(LIST_MS, signal));
  // Without one the watch would begin somewhere later.
  if (!resourceVersion) throw new KubernetesError('transient', 'The list has no position to watch from.', 'malformed');
  const listed = new Set(items.map(uidOf));
  for (const [uid, object] of [...state.objects]) {
    if (listed.has(uid)) continue;
    state.objects.delete(uid);
    handler.removed(object);
  }
  for (const object of items) keep(following, object);
  state.resourceVersion = resourceVersion;
  state.saidAt = askedAt;
}

async function watchOnce<T extends KubernetesObject>(following: Following<T>): Promise<'by the server' | 'renewed'> {
  const { connection, of, scope, state, handler, signal, options } = following;
  const renewal = new AbortController();
  const opened = (): void => {
    state.openedAt = state.begunAt = performance.now();
    state.renewal = renewal;
    if (state.outdatedSince === null) return;
    state.outdatedSince = null;
    handler.synchronized();
  };
  const ctx = { signal: AbortSignal.any([signal, renewal.signal]), deadline: Infinity };
  try {
    for await (const event of watchObjects(connection, of, scope, state.resourceVersion ?? '', ctx, opened, options))
      take(following, event);
  } finally {
    state.renewal = null;
  }
  return renewal.signal.aborted ? 'renewed' : 'by the server';
}

function take<T extends KubernetesObject>(following: Following<T>, event: WatchEvent<T>): void {
  const { state, handler } = following;
  state.resourceVersion = event.resourceVersion;
  state.saidAt = performance.now();
  if (event.type === 'bookmark') return;
  if (event.type !== 'deleted') return keep(following, event.object);
  if (state.objects.delete(uidOf(event.object))) handler.removed(event.object);
}

function keep<T extends KubernetesObject>({ state, handler }: Following<T>, object: T): void {
  const uid = uidOf(object);
  const before = state.objects.get(uid);
  if (before && before.metadata?.resourceVersion === object.metadata?.resourceVersion) return;
  // Half of an object, and only of use to its server.
  delete object.metadata?.managedFields;
  state.objects.set(uid, object);
  handler.changed(object, before);
}

function uidOf({ metadata }: KubernetesObject): string {
  if (metadata?.uid === undefined)
    throw new KubernetesError('transient', 'An object of the API server has no uid.', 'malformed');
  return metadata.uid;
}

/** A callback that throws must not end the following, nor make it list again. */
function guard<T>(handler: FollowHandler<T>): Required<FollowHandler<T>> {
  const failed = (error: Error): void => {
    try {
      handler.failed?.(error);
    } catch {
      // There is nobody left to tell.
    }
  };
  const guarded =
    <Args extends unknown[]>(call: ((...args: Args) => void) | undefined) =>
    (...args: Args): void => {
      try {
        call?.(...args);
      } catch (error) {
        failed(error as Error);
      }
    };
  return {
    changed: guarded(handler.changed?.bind(handler)),
    removed: guarded(handler.removed?.bind(handler)),
    synchronized: guarded(handler.synchronized?.bind(handler)),
    failed,
  };
}
