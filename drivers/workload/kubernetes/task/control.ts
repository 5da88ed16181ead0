// Orders to the script in the container of a task (script.ts), over a program that the cluster starts beside it.
import type { Pod } from 'kubernetes-types/core/v1';
import { DriverError, driverContext, type DriverContext } from '../../../../core/driver';
import type { KubernetesClient } from '../../../kubernetes/client/client';
import { linesOf } from '../../../kubernetes/client/lines';
import { keyOf } from '../own_object';
import { CONTROL_COMMAND } from './script';

export interface Control {
  /** One at a time. @returns the answer. @throws DriverError where the connection has broken */
  order(text: string): Promise<string>;
  close(): void;
}

export const CONTAINER = 'run';
const ANSWER_BYTES_MAX = 1024;

/** @throws DriverError; `unsupported` where the image has no shell */
export async function openControl(client: KubernetesClient, pod: Pod, ctx: DriverContext): Promise<Control> {
  const options = { container: CONTAINER, command: CONTROL_COMMAND, stdin: true };
  const stream = await client.openPodStream(keyOf(pod), options, ctx);
  stream.stderr.resume();
  const answers = linesOf(stream.stdout as AsyncIterable<Buffer>, ANSWER_BYTES_MAX);
  const order = async (text: string): Promise<string> => {
    stream.stdin.write(`${text}\n`);
    const { value, done } = await answers.next().catch(() => ({ value: undefined, done: true as const }));
    if (!done) return value.content.toString();
    const { reason } = await stream.exit;
    throw reason === null
      ? new DriverError('transient', 'The program of the run has ended.')
      : new DriverError('unsupported', `The cluster cannot reach into the run: ${reason}`);
  };
  let turn: Promise<unknown> = Promise.resolve();
  return {
    order(text) {
      const mine = turn.then(() => order(text));
      turn = mine.catch(() => undefined);
      return mine;
    },
    close: () => stream.close(),
  };
}

/** @throws DriverError */
export async function orderOnce(client: KubernetesClient, pod: Pod, text: string, withinMs: number): Promise<string> {
  const control = await openControl(client, pod, driverContext(withinMs));
  try {
    return await control.order(text);
  } finally {
    control.close();
  }
}
