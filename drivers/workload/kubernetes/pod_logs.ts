// Output of pods. Each pod has one stream that follows its log; lines wait in a bounded buffer until they are read. A
// position is the time of the last line that was read, and how many lines had that time: a stream that breaks, or a
// process that starts again, goes on behind it. Lines that were read are kept until a later position is asked for: a
// reader that could not store them reads them again.
import type { KubernetesClient } from '../../kubernetes/client/client';
import { hasCode } from '../../kubernetes/client/failure';
import { backoff, pause } from '../../kubernetes/client/pause';
import { podLogLines } from '../../kubernetes/client/pod_log';
import type { LogChunk } from '../../runtime';
import { cleanLines } from '../../runtime/log';
import type { WorkloadLogs } from '../../workload';
import type { Pod } from 'kubernetes-types/core/v1';
import { unboundedContext } from '../../../core/driver';
import { isMark } from './task/script';

/** Where the log of a pod is. */
interface PodLogSource {
  uid: string;
  /** Of the log: `pod.` and the uid, or `job.` and the id of a task. */
  key: string;
  namespace: string;
  name: string;
  container: string;
}

export interface PodLogs extends WorkloadLogs {
  /** Follows the log from then on. Repeatable. */
  open(source: PodLogSource): void;
  /** The program has ended, and starts no more: its log is whole once it was read to its end. */
  complete(uid: string): void;
  /** Resolves when a complete log was read; false after some seconds. */
  untilRead(key: string): Promise<boolean>;
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
  return { uid, key: `${LOG_PREFIX}${uid}`, namespace, name, container: spec?.containers[0]?.name ?? '' };
}

const LINE_BYTES = 16 * 1024;
const NANOSECOND_DIGITS = 9;
/** Of the ids of logs: the pod's uid follows. */
export const LOG_PREFIX = 'pod.';
const BUFFER_BYTES = 256 * 1024;
const RETRY_MS = { first: 500, max: 15_000 };
const LAST_LINES_MS = 5_000;
const READ_WITHIN_MS = 15_000;

interface Line {
  /** Several where a carriage return was in it; none for a line of the platform's own. */
  texts: string[];
  position: string;
  bytes: number;
}

interface Followed {
  source: PodLogSource;
  lines: Line[];
  bytes: number;
  /** What was read last, from which position; kept until it is known to be stored. */
  sent: { from: string; lines: Line[] };
  /** Of the last line in the buffer. */
  last: string | null;
  /** null: nobody has read yet, so it is not known where to begin. */
  reading: Promise<void> | null;
  isGone: boolean;
  isComplete: boolean;
  /** All that can be read of it was read. */
  isRead: boolean;
  /** Called when there is room again. */
  onRoom: (() => void) | null;
  stop: AbortController;
}

export function openPodLogs(client: KubernetesClient): PodLogs {
  const all = new Map<string, Followed>();
  const byUid = (uid: string): Followed | undefined => [...all.values()].find(({ source }) => source.uid === uid);
  return {
    open(source) {
      if (!all.has(source.key)) all.set(source.key, followed(source));
    },
    readLog(key, position) {
      const log = all.get(key);
      if (!log) return Promise.resolve({ lines: [], position: position ?? '', more: false });
      if (log.reading === null) {
        log.last = position;
        log.reading = followLog(client, log);
      }
      return Promise.resolve(take(all, log, position ?? ''));
    },
    trimLog: () => Promise.resolve(),
    complete(uid) {
      const log = byUid(uid);
      if (log) log.isComplete = true;
    },
    async untilRead(key) {
      const log = all.get(key);
      // A pod whose program never ran has no log.
      if (!log || log.isRead) return true;
      const over = new AbortController();
      const read = (log.reading ?? pause(READ_WITHIN_MS, over.signal)).then(() => log.isRead);
      const late = pause(READ_WITHIN_MS, over.signal).then(() => false);
      return Promise.race([read, late]).finally(() => over.abort());
    },
    ended(uid) {
      const log = byUid(uid);
      if (!log) return;
      log.isGone = true;
      setTimeout(() => log.stop.abort(), LAST_LINES_MS).unref();
    },
    list: () => Promise.resolve([...all.keys()]),
    async untilEnded(uid) {
      await byUid(uid)?.reading;
    },
    close() {
      for (const { stop } of all.values()) stop.abort();
    },
  };
}

function followed(source: PodLogSource): Followed {
  return {
    ...{ source, lines: [], bytes: 0, sent: { from: '', lines: [] }, last: null, reading: null },
    ...{ isGone: false, isComplete: false, isRead: false, onRoom: null, stop: new AbortController() },
  };
}

function take(all: Map<string, Followed>, log: Followed, position: string): LogChunk {
  const { sent } = log;
  const isAgain = sent.lines.length > 0 && position === sent.from;
  const lines = isAgain ? sent.lines : log.lines.splice(0);
  const more = isAgain ? log.lines.length > 0 : log.onRoom !== null;
  if (!isAgain) {
    log.sent = { from: position, lines };
    log.bytes = 0;
    log.onRoom?.();
    if (log.isGone && log.stop.signal.aborted && lines.length === 0) all.delete(log.source.key);
  }
  return {
    lines: lines.flatMap(({ texts }) => texts.map((text) => ({ stream: 'stdout' as const, text }))),
    position: lines.at(-1)?.position ?? position,
    more,
  };
}

/** Until the pod has gone and its stream has ended, or a complete log was read. */
async function followLog(client: KubernetesClient, log: Followed): Promise<void> {
  const { signal } = log.stop;
  const retry = backoff(RETRY_MS.first, RETRY_MS.max);
  while (!signal.aborted) {
    const wasComplete = log.isComplete;
    const outcome = await readStream(client, log, signal).catch((error: unknown) =>
      hasCode(error, 'not_found') && wasComplete ? 'empty' : 'failed',
    );
    log.isRead = log.isGone || (wasComplete && outcome !== 'failed');
    if (log.isRead) return log.stop.abort();
    // The container has ended; its successor has a stream of its own.
    if (outcome === 'read') retry.reset();
    // What was printed since is read at once.
    if (log.isComplete && !wasComplete) continue;
    await pause(retry.next(), signal);
  }
}

/** To its end. @throws DriverError */
async function readStream(client: KubernetesClient, log: Followed, signal: AbortSignal): Promise<'read' | 'empty'> {
  const { namespace, name, container } = log.source;
  const [since = null, count = 0] = parsePosition(log.last);
  const options = { container, follow: true, timestamps: true, ...(since !== null && { sinceTime: since }) };
  let skipped = 0;
  let isRead = false;
  const stream = await client.openPodLog({ namespace, name }, options, { ...unboundedContext(), signal });
  for await (const { time, content } of podLogLines(stream, LINE_BYTES)) {
    const at = time ?? since ?? '';
    // The cluster knows whole seconds only: what was read already comes again.
    if (since !== null && (isBefore(at, since) || (at === since && (skipped += 1) <= count))) continue;
    isRead = true;
    await add(log, at, content, signal);
  }
  return isRead ? 'read' : 'empty';
}

async function add(log: Followed, at: string, content: Buffer, signal: AbortSignal): Promise<void> {
  const [last, count = 0] = parsePosition(log.last);
  const position = `${at} ${last === at ? count + 1 : 1}`;
  const bytes = content.length;
  while (log.bytes > 0 && log.bytes + bytes > BUFFER_BYTES && !signal.aborted)
    await new Promise<void>((resolve) => {
      const end = (): void => {
        log.onRoom = null;
        signal.removeEventListener('abort', end);
        resolve();
      };
      log.onRoom = end;
      signal.addEventListener('abort', end);
    });
  log.lines.push({ texts: isMark(content.toString()) ? [] : cleanLines(content), position, bytes });
  log.bytes += bytes;
  log.last = position;
}

const FRACTION = /\.(\d+)/;

/** Times of a node have its time zone, which changes twice a year, and nanoseconds. */
function isBefore(one: string, other: string): boolean {
  const difference = Date.parse(one) - Date.parse(other);
  if (difference !== 0) return difference < 0;
  const [a, b] = [one, other].map((time) => (FRACTION.exec(time)?.[1] ?? '').padEnd(NANOSECOND_DIGITS, '0'));
  return a! < b!;
}

function parsePosition(position: string | null): [string, number] | [] {
  const [at, count] = position?.split(' ') ?? [];
  return at && count ? [at, Number(count)] : [];
}
