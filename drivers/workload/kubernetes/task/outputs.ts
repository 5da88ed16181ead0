// Standard output and error of a pod's stream, as parts in the order in which they came.
import type { Readable } from 'node:stream';
import type { PodStream } from '../../../kubernetes/client/pod_stream';
import type { OutputPart, OutputStream } from '../../../runtime/attachment';
import { markOf } from './script';

export interface Outputs {
  /** The next part; null at the end of both; `woken` by `wake`. */
  next(): Promise<OutputPart | 'woken' | null>;
  /** What has come already. */
  takeNow(): OutputPart[];
  /** Reads until the line of this client has come, and drops that and others of its kind. False when woken before. */
  seesMark(client: string): Promise<boolean>;
  wake(): void;
}

const MARKS = /^(\u001e[0-9a-f]{16}\r?\n)+/;
const MARK_BEGUN = /^\u001e[0-9a-f]{0,16}\r?$/;

export function openOutputs({ stdout, stderr }: PodStream): Outputs {
  const sources: [OutputStream, Readable][] = [
    ['stdout', stdout],
    ['stderr', stderr],
  ];
  const kept: OutputPart[] = [];
  let isWoken = false;
  let resume = (): void => undefined;
  const wake = (): void => {
    isWoken = true;
    resume();
  };
  for (const [, readable] of sources)
    for (const event of ['readable', 'end', 'close', 'error']) readable.on(event, () => resume());
  const readNow = (): OutputPart | null => {
    for (const [stream, readable] of sources) {
      const bytes = readable.read() as Buffer | null;
      if (bytes !== null) return { stream, bytes };
    }
    return null;
  };
  const next: Outputs['next'] = async () => {
    for (;;) {
      const part = kept.shift() ?? readNow();
      if (part) return part;
      if (isWoken) {
        isWoken = false;
        return 'woken';
      }
      if (sources.every(([, { readableEnded, destroyed }]) => readableEnded || destroyed)) return null;
      await new Promise<void>((resolve) => (resume = resolve));
    }
  };
  return {
    next,
    wake,
    takeNow() {
      const taken = kept.splice(0);
      for (let part = readNow(); part; part = readNow()) taken.push(part);
      return taken;
    },
    async seesMark(client) {
      isWoken = false;
      let text = '';
      for (let part = await next(); part !== null && part !== 'woken'; part = await next()) {
        text += part.bytes.toString('latin1');
        const rest = text.replace(MARKS, '');
        if (MARK_BEGUN.test(rest)) continue;
        const isSeen = text.slice(0, text.length - rest.length).includes(`${markOf(client)}`);
        if (rest !== '') kept.push({ stream: part.stream, bytes: Buffer.from(rest, 'latin1') });
        if (isSeen || rest !== '') return isSeen;
        text = '';
      }
      if (text !== '') kept.push({ stream: 'stdout', bytes: Buffer.from(text, 'latin1') });
      return false;
    },
  };
}
