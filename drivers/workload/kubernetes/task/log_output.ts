// Output of a task from the log that its node keeps: whole lines, standard output and error as one.
import type { Pod } from 'kubernetes-types/core/v1';
import type { DriverContext } from '../../../../core/driver';
import { pause } from '../../../kubernetes/client/pause';
import { resourceTypes } from '../../../kubernetes/client/resource_type';
import type { OutputPart } from '../../../runtime/attachment';
import type { TaskRef } from '../../task';
import { keyOf, type OwnObjects } from '../own_object';
import { CONTAINER } from './control';
import { hasProgramEnded } from './state';
import { taskKeyOf } from './job';

const AGAIN_MS = 500;

/** The last bytes of what was printed so far. */
export async function readTail(
  { client }: OwnObjects,
  pod: Pod,
  bytesMax: number,
  ctx: DriverContext,
): Promise<Buffer> {
  const log = await client.openPodLog(keyOf(pod), { container: CONTAINER }, ctx);
  let kept: Buffer[] = [];
  let size = 0;
  for await (const chunk of log as AsyncIterable<Buffer>) {
    kept.push(chunk);
    size += chunk.length;
    // Not for each chunk: a log may have millions of bytes.
    if (size <= 2 * bytesMax + chunk.length) continue;
    kept = [Buffer.concat(kept).subarray(-bytesMax)];
    size = bytesMax;
  }
  return bytesMax === 0 ? Buffer.alloc(0) : Buffer.concat(kept).subarray(-bytesMax);
}

/** Until its program has ended. Begins `replayBytes` before its present end. */
export async function* followLog(
  options: OwnObjects,
  ref: TaskRef,
  pod: Pod,
  replayBytes: number,
  ctx: DriverContext,
): AsyncGenerator<OutputPart> {
  let skipped = Math.max(0, (await lengthOf(options, pod, ctx)) - replayBytes);
  while (!ctx.signal.aborted) {
    // Before it is read: what is printed after this is read in the next round.
    const isWhole = await hasEndedNow(options, ref, ctx);
    let at = 0;
    const log = await options.client.openPodLog(keyOf(pod), { container: CONTAINER, follow: true }, ctx);
    try {
      for await (const chunk of log as AsyncIterable<Buffer>) {
        const bytes = chunk.subarray(Math.max(0, skipped - at));
        at += chunk.length;
        if (bytes.length > 0) yield { stream: 'stdout', bytes: withoutMarks(bytes) };
      }
    } catch (error) {
      if (!ctx.signal.aborted) throw error;
    }
    if (isWhole) return;
    skipped = Math.max(skipped, at);
    await pause(AGAIN_MS, ctx.signal);
  }
}

async function lengthOf({ client }: OwnObjects, pod: Pod, ctx: DriverContext): Promise<number> {
  let length = 0;
  const log = await client.openPodLog(keyOf(pod), { container: CONTAINER }, ctx);
  for await (const chunk of log as AsyncIterable<Buffer>) length += chunk.length;
  return length;
}

async function hasEndedNow({ client, prefix }: OwnObjects, ref: TaskRef, ctx: DriverContext): Promise<boolean> {
  const { namespace } = taskKeyOf(prefix, ref);
  const scope = { namespace, labelSelector: `platform-api/run=${ref.id}` };
  const [pod] = (await client.list(resourceTypes.pods, scope, ctx)).items;
  return pod === undefined || hasProgramEnded(pod);
}

/** Lines that announce clients are none of the program. */
export function withoutMarks(bytes: Buffer): Buffer {
  if (!bytes.includes(0x1e)) return bytes;
  return Buffer.from(bytes.toString('latin1').replaceAll(/\u001e[0-9a-f]{16}\r?\n/g, ''), 'latin1');
}
