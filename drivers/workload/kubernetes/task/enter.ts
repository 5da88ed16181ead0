// A command in the container of a running instance. Its life is the connection: a cluster does not start it again, and
// keeps neither its output nor its exit code for anybody who comes later.
import type { Pod } from 'kubernetes-types/core/v1';
import { DriverError, driverContext, type DriverContext } from '../../../../core/driver';
import type { PodStream } from '../../../kubernetes/client/pod_stream';
import { resourceTypes } from '../../../kubernetes/client/resource_type';
import type { Attachment, OutputPart } from '../../../runtime/attachment';
import type { EnteredCommand } from '../../task';
import { LABEL, namespaceOf, selectorText } from '../names';
import { isInItsProject, keyOf, type OwnObjects } from '../own_object';
import { inputOver } from './attach';
import { openOutputs } from './outputs';

/** Its first line is its process id; the node makes it the leader of a group. */
const WITH_ID = 'echo $$; exec "$@"';
const WITH_TERMINAL = `TERM=xterm-256color; export TERM; ${WITH_ID}`;
/** Programs at a terminal have been hung up already. */
const END_GROUP = 'kill -TERM -- "-$1"; kill -HUP -- "-$1"; sleep 2; kill -KILL -- "-$1"';
const END_WITHIN_MS = 10_000;
const ID_LENGTH_MAX = 20;

interface Entered {
  options: OwnObjects;
  pod: Pod;
  stream: PodStream;
  /** Of the command, once it has begun. */
  id: string;
  hasEnded: boolean;
}

/**
 * null where the instance has gone.
 * @throws DriverError `unsupported` where the image has no shell
 */
export async function enterInstance(
  options: OwnObjects,
  entered: EnteredCommand,
  ctx: DriverContext,
): Promise<Attachment | null> {
  const { command, tty } = entered;
  const pod = await findPod(options, entered, ctx);
  const container = pod?.spec?.containers[0]?.name;
  if (pod === null || container === undefined) return null;
  const script = tty ? WITH_TERMINAL : WITH_ID;
  const how = { container, command: ['/bin/sh', '-c', script, 'sh', ...command], stdin: true, tty };
  // Of the connection alone: it lasts as long as its client.
  const stream = await options.client.openPodStream(keyOf(pod), how, {
    signal: new AbortController().signal,
    deadline: Infinity,
  });
  stream.exit.catch(() => undefined);
  const begun: Entered = { options, pod, stream, id: '', hasEnded: false };
  return {
    output: (_, signal) => outputOf(begun, signal),
    openInput: () => Promise.resolve(inputOver(stream, tty)),
    endInput: () => undefined,
    sendSignal: () =>
      Promise.reject(new DriverError('unsupported', 'A command in an instance of a cluster takes no signals.')),
    resize({ rows, columns }) {
      stream.resize(columns, rows);
      return Promise.resolve();
    },
    close: () => leave(begun),
  };
}

async function findPod(
  { client, prefix }: OwnObjects,
  { project_id, application_id, pod_uid }: EnteredCommand,
  ctx: DriverContext,
): Promise<Pod | null> {
  const scope = {
    namespace: namespaceOf(prefix, project_id),
    labelSelector: selectorText({ [LABEL.installation]: prefix, [LABEL.application]: application_id }),
  };
  const { items } = await client.list(resourceTypes.pods, scope, ctx);
  const found = items.find(({ metadata }) => metadata?.uid === pod_uid);
  return found && isInItsProject({ prefix }, found) ? found : null;
}

async function* outputOf(entered: Entered, signal: AbortSignal): ReturnType<Attachment['output']> {
  const outputs = openOutputs(entered.stream);
  const stop = (): void => entered.stream.close();
  signal.addEventListener('abort', stop, { once: true });
  let head = '';
  for (let part = await outputs.next(); part !== null; part = await outputs.next()) {
    if (part === 'woken') continue;
    if (entered.id !== '' || part.stream === 'stderr') {
      yield part;
      continue;
    }
    head += part.bytes.toString('latin1');
    const rest = takeId(entered, head);
    if (rest !== null && rest.bytes.length > 0) yield rest;
  }
  if (signal.aborted) return null;
  const { code, reason } = await entered.stream.exit;
  entered.hasEnded = true;
  if (reason !== null) throw new DriverError('unsupported', `The cluster cannot run the command: ${reason}`);
  return { state: 'exited', code, signal: null, killed: null, at: new Date().toISOString() };
}

/** What follows the first line; null while that has not come. */
function takeId(entered: Entered, head: string): OutputPart | null {
  const end = head.indexOf('\n');
  if (end < 0 && head.length <= ID_LENGTH_MAX) return null;
  entered.id = /^\d{1,10}(?=\r?\n)/.exec(head)?.[0] ?? '-';
  return { stream: 'stdout', bytes: Buffer.from(entered.id === '-' ? head : head.slice(end + 1), 'latin1') };
}

/** The command and what it has started end with its client. */
function leave({ options, pod, stream, id, hasEnded }: Entered): void {
  stream.close();
  if (hasEnded || !/^\d+$/.test(id)) return;
  const container = pod.spec?.containers[0]?.name as string;
  const command = ['/bin/sh', '-c', END_GROUP, 'sh', id];
  void options.client.openPodStream(keyOf(pod), { container, command }, driverContext(END_WITHIN_MS)).then(
    (ending) => {
      ending.stdout.resume();
      ending.stderr.resume();
      return ending.exit.catch(() => undefined).finally(() => ending.close());
    },
    // Its pod has gone, and with it the command.
    () => undefined,
  );
}
