// Output of pods. Each pod has one stream that follows its log; lines wait in a bounded buffer until they are read. A
// position is the time of the last line that was read, and how many lines had that time: a stream that breaks, or a
// process that starts again, goes on behind it.
import type { KubernetesClient } from '../../kubernetes/client/client';
import { backoff, pause } from '../../kubernetes/client/pause';
import { podLogLines } from '../../kubernetes/client/pod_log';
import type { LogChunk } from '../../runtime';
import type { WorkloadLogs } from '../../workload';
import type { Pod } from 'kubernetes-types/core/v1';
import { unboundedContext } from '../../../core/driver';

/** Where the log of a pod is. */
export interface PodLogSource {
  uid: string;
  namespace: string;
  name: string;
  container: string;
}

export interface PodLogs extends WorkloadLogs {
  /** Follows the log from then on. Repeatable. */
  open(source: PodLogSource): void;
  /** The pod has gone: what is left can still be read. */
  ended(uid: string): void;
  close(): void;
}

/** null before its container has started for the first time. */
export function logSourceOf({ metadata, spec, status }: Pod): PodLogSource | null {
  const [container] = status?.containerStatuses ?? [];
  const hasStarted = container?.state?.running ?? container?.state?.terminated ?? container?.lastState?.terminated;
  if (!hasStarted || !metadata?.uid) return null;
  const { uid, namespace = '', name = '' } = metadata;
  return { uid, namespace, name, container: spec?.containers[0]?.name ?? '' };
}

const LINE_BYTES = 16 * 1024;
/** Of the ids of logs: the pod's uid follows. */
export const LOG_PREFIX = 'pod.';
const BUFFER_BYTES = 256 * 1024;
const RETRY_MS = { first: 500, max: 15_000 };
const LAST_LINES_MS = 5_000;

interface Line {
  text: string;
  position: string;
  bytes: number;
}

interface Followed {
  source: PodLogSource;
  lines: Line[];
  bytes: number;
  /** Of the last line in the buffer. */
  last: string | null;
  /** null: nobody has read yet, so it is not known where to begin. */
  reading: Promise<void> | null;
  isGone: boolean;
  /** Called when there is room again. */
  onRoom: (() => void) | null;
  stop: AbortController;
}

export function openPodLogs(client: KubernetesClient): PodLogs {
  const all = new Map<string, Followed>();
  return {
    open(source) {
      if (!all.has(source.uid)) all.set(source.uid, followed(source));
    },
    readLog(id, position) {
      const log = all.get(uidOf(id));
      if (!log) return Promise.resolve({ lines: [], position: position ?? '', more: false });
      if (log.reading === null) {
        log.last = position;
        log.reading = followLog(client, log);
      }
      return Promise.resolve(take(all, log, position));
    },
    trimLog: () => Promise.resolve(),
    ended(uid) {
      const log = all.get(uid);
      if (!log) return;
      log.isGone = true;
      setTimeout(() => log.stop.abort(), LAST_LINES_MS).unref();
    },
    list: () => Promise.resolve([...all.keys()].map((uid) => `${LOG_PREFIX}${uid}`)),
    async untilEnded(uid) {
      await all.get(uid)?.reading;
    },
    close() {
      for (const { stop } of all.values()) stop.abort();
    },
  };
}

function uidOf(id: string): string {
  return id.slice(LOG_PREFIX.length);
}

function followed(source: PodLogSource): Followed {
  const stop = new AbortController();
  return { source, lines: [], bytes: 0, last: null, reading: null, isGone: false, onRoom: null, stop };
}

function take(all: Map<string, Followed>, log: Followed, position: string | null): LogChunk {
  const lines = log.lines.splice(0);
  log.bytes = 0;
  log.onRoom?.();
  const isOver = log.isGone && log.stop.signal.aborted;
  if (isOver && lines.length === 0) all.delete(log.source.uid);
  return {
    lines: lines.map(({ text }) => ({ stream: 'stdout', text })),
    position: lines.at(-1)?.position ?? position ?? '',
    more: false,
  };
}

/** Until the pod has gone and its stream has ended. */
async function followLog(client: KubernetesClient, log: Followed): Promise<void> {
  const { signal } = log.stop;
  const retry = backoff(RETRY_MS.first, RETRY_MS.max);
  while (!signal.aborted) {
    const isRead = await readStream(client, log, signal).catch(() => false);
    if (log.isGone) log.stop.abort();
    // The container has ended; its successor has a stream of its own.
    if (isRead) retry.reset();
    await pause(retry.next(), signal);
  }
}

/** @returns whether a line came */
async function readStream(client: KubernetesClient, log: Followed, signal: AbortSignal): Promise<boolean> {
  const { namespace, name, container } = log.source;
  const [since = null, count = 0] = parsePosition(log.last);
  const options = { container, follow: true, timestamps: true, ...(since !== null && { sinceTime: since }) };
  let skipped = 0;
  let isRead = false;
  const stream = await client.openPodLog({ namespace, name }, options, { ...unboundedContext(), signal });
  for await (const { time, content } of podLogLines(stream, LINE_BYTES)) {
    const at = time ?? since ?? '';
    // The cluster knows whole seconds only: what was read already comes again.
    if (since !== null && (at < since || (at === since && (skipped += 1) <= count))) continue;
    isRead = true;
    await add(log, at, content.toString(), signal);
  }
  return isRead;
}

async function add(log: Followed, at: string, text: string, signal: AbortSignal): Promise<void> {
  const [last, count = 0] = parsePosition(log.last);
  const position = `${at} ${last === at ? count + 1 : 1}`;
  const bytes = Buffer.byteLength(text);
  while (log.bytes > 0 && log.bytes + bytes > BUFFER_BYTES && !signal.aborted)
    await new Promise<void>((resolve) => {
      const end = (): void => {
        signal.removeEventListener('abort', end);
        resolve();
      };
      log.onRoom = end;
      signal.addEventListener('abort', end);
    });
  log.lines.push({ text, position, bytes });
  log.bytes += bytes;
  log.last = position;
}

function parsePosition(position: string | null): [string, number] | [] {
  const [at, count] = position?.split(' ') ?? [];
  return at && count ? [at, Number(count)] : [];
}
