// One watch: events of objects as they come, until the server ends it, which it does every few minutes.
import type { Status } from 'kubernetes-types/meta/v1';
import type { DriverContext } from '../../../core/driver';
import { connectionError, type Connection } from './connection';
import { KubernetesError, kubernetesRefusal } from './failure';
import { linesOf } from './lines';
import {
  collectionPath,
  collectionSubject,
  type KubernetesObject,
  type ListScope,
  type ResourceType,
} from './resource_type';

/** `bookmark`: nothing changed up to `resourceVersion`. */
export type WatchEvent<T> =
  | { type: 'added' | 'modified' | 'deleted'; object: T; resourceVersion: string }
  | { type: 'bookmark'; resourceVersion: string };

/** An object has 1.5 MiB in etcd at most, and is longer as JSON. */
const EVENT_BYTES_MAX = 16 * 1024 * 1024;
/** The server ends a watch after this time, and up to a half more: not all at once. */
const WATCH_SECONDS = 240;

/** Bookmarks come each minute: a connection that is silent for longer is given up, though its kernel answers. */
const SILENT_MS_MAX = 150_000;
/** Of a watch that ends sooner: after the time that the server was given. */
const LATE_MS = 3_000;

/** `watchSeconds`: how long a watch lasts. A dead connection is noticed a little later; each costs a request. */
export interface WatchOptions {
  watchSeconds?: number;
}

/**
 * Events after `resourceVersion`. Ends when the server ends it or the signal is aborted.
 * @param opened called once the server has taken the position
 * @throws KubernetesError; `expired`: the position is too old, list again
 */
export async function* watchObjects<T extends KubernetesObject>(
  connection: Connection,
  of: ResourceType<T>,
  scope: ListScope,
  resourceVersion: string,
  ctx: DriverContext,
  opened?: () => void,
  { watchSeconds = WATCH_SECONDS }: WatchOptions = {},
): AsyncGenerator<WatchEvent<T>> {
  const subject = collectionSubject(of, scope);
  const { labelSelector, fieldSelector } = scope;
  const timeoutSeconds = Math.floor(watchSeconds * (1 + Math.random() / 2));
  const position = { watch: true, allowWatchBookmarks: true, resourceVersion, timeoutSeconds };
  const query = { ...position, labelSelector, fieldSelector };
  const request = { method: 'GET', path: collectionPath(of, scope), query, subject } as const;
  const response = await connection.open(request, ctx);
  const silentMs = Math.min(SILENT_MS_MAX, timeoutSeconds * 1000 + LATE_MS);
  response.setTimeout(silentMs, () => response.destroy(new Error('timeout')));
  opened?.();
  try {
    for await (const { content, cut } of linesOf(response as AsyncIterable<Buffer>, EVENT_BYTES_MAX)) {
      if (cut) throw new KubernetesError('unsupported', 'An event of the API server is too large.', 'too_large');
      yield parseEvent(of, content.toString(), subject);
    }
  } catch (error) {
    if (ctx.signal.aborted) return;
    throw error instanceof KubernetesError ? error : connectionError(error as Error, ctx);
  } finally {
    response.destroy();
  }
}

const TYPES: Record<string, 'added' | 'modified' | 'deleted'> = {
  ADDED: 'added',
  MODIFIED: 'modified',
  DELETED: 'deleted',
};

function parseEvent<T extends KubernetesObject>(
  of: ResourceType<T>,
  text: string,
  subject: ReturnType<typeof collectionSubject>,
): WatchEvent<T> {
  const { type, object } = parseJson(text);
  if (type === 'ERROR') throw kubernetesRefusal((object as Status).code ?? 500, JSON.stringify(object), subject);
  const resourceVersion = (object as KubernetesObject | undefined)?.metadata?.resourceVersion;
  if (resourceVersion === undefined) throw malformedEvent();
  if (type === 'BOOKMARK') return { type: 'bookmark', resourceVersion };
  const change = TYPES[type ?? ''];
  if (!change) throw malformedEvent();
  return { type: change, object: object as T, resourceVersion };
}

function parseJson(text: string): { type?: string; object?: unknown } {
  try {
    return (JSON.parse(text) as { type?: string; object?: unknown } | null) ?? {};
  } catch {
    // A line that broke off with its connection too.
    throw malformedEvent();
  }
}

const malformedEvent = (): KubernetesError =>
  new KubernetesError('transient', 'An event of the API server is not valid.', 'malformed');
