// The log of a pod's container, as its node keeps it.
import type { Readable } from 'node:stream';
import type { DriverContext } from '../../../core/driver';
import type { Connection } from './connection';
import { linesOf } from './lines';
import { objectPath, objectSubject, resourceTypes, type ObjectName } from './resource_type';

export interface PodLogOptions {
  /** Needed where the pod has more than one. */
  container?: string;
  /** Goes on with what is printed from now on, until the container ends or the node rotates the log. */
  follow?: boolean;
  /** Of the container before, which crashed. */
  previous?: boolean;
  /** RFC 3339. Of whole seconds: lines of the same second come again. */
  sinceTime?: string;
  /** Each line begins with its time: see `podLogLines`. */
  timestamps?: boolean;
  tailLines?: number;
  limitBytes?: number;
}

/**
 * What is not read stays at the node: a slow reader costs no memory. The stream fails when the signal is aborted.
 * @throws DriverError
 */
export function openPodLog(
  connection: Connection,
  pod: ObjectName,
  options: PodLogOptions,
  ctx: DriverContext,
): Promise<Readable> {
  const path = objectPath(resourceTypes.pods, pod, 'log');
  const subject = { ...objectSubject(resourceTypes.pods, pod), secret: false };
  return connection.open({ method: 'GET', path, query: { ...options }, subject }, ctx);
}

export interface PodLogLine {
  /** RFC 3339 with nanoseconds, as the node gives it; null where the line is the node's own, as that a log is lost. */
  time: string | null;
  content: Buffer;
  /** It was longer than the limit. */
  cut: boolean;
}

const SPACE = 32;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const TIME_BYTES_MAX = 40;

/** Lines of a log that was opened with `timestamps`. @param bytesMax of each line, with its time */
export async function* podLogLines(log: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<PodLogLine> {
  for await (const { content, cut } of linesOf(log, bytesMax)) {
    const end = content.subarray(0, TIME_BYTES_MAX).indexOf(SPACE);
    const time = content.toString('latin1', 0, Math.max(end, 0));
    const has = TIME.test(time);
    yield { time: has ? time : null, content: has ? content.subarray(end + 1) : content, cut };
  }
}
