// A client at a task. Its output is joined at the node and its end is read from the pod; what came before a late client
// is in the log, in whole lines of one stream. Where the task has input, its program waits for the first client
// (script.ts), so that this client misses nothing.
import { randomBytes } from 'node:crypto';
import { Writable } from 'node:stream';
import type { Pod } from 'kubernetes-types/core/v1';
import { DriverError, type DriverContext } from '../../../../core/driver';
import type { PodStream } from '../../../kubernetes/client/pod_stream';
import type { Attachment, OutputPart } from '../../../runtime/attachment';
import type { Task, TaskRef } from '../../task';
import { keyOf, type OwnObjects } from '../own_object';
import { CONTAINER, openControl, type Control } from './control';
import { followLog, readTail, withoutMarks } from './log_output';
import { openOutputs, type Outputs } from './outputs';
import { WRITE_COMMAND } from './script';
import { hasProgramEnded } from './state';
import { untilExited } from './until_exited';

/** Until a terminal is told its size. */
const SIZE = { rows: 24, columns: 80 };
const CLIENT_BYTES = 8;
const MARK_AGAIN_MS = 500;

interface Client {
  options: OwnObjects;
  ref: TaskRef;
  pod: Pod;
  input: Task['input'];
  ctx: DriverContext;
  /** Opened with the input: what changes the size of the terminal. */
  terminal: PodStream | null;
  control: Promise<Control> | null;
}

/** null before its program runs, and once it is gone. */
export function attachToTask(
  options: OwnObjects,
  ref: TaskRef,
  input: Task['input'],
  pod: Pod | null,
): Attachment | null {
  const isStarted = pod?.status?.containerStatuses?.[0]?.state?.running !== undefined;
  if (pod === null || !(isStarted || hasProgramEnded(pod))) return null;
  const left = new AbortController();
  const ctx = { signal: left.signal, deadline: Infinity };
  const client: Client = { options, ref, pod, input, ctx, terminal: null, control: null };
  const order = async (text: string): Promise<string> => (await controlOf(client)).order(text);
  return {
    output: (replayBytes, signal) => outputOf(client, replayBytes, AbortSignal.any([signal, left.signal])),
    openInput: () => openInput(client),
    endInput: () => void order('end').catch(() => undefined),
    async sendSignal(signal) {
      if (input === null) throw new DriverError('unsupported', 'The run was started without input.');
      if ((await order(`signal ${signal.replace(/^SIG/, '')}`)) === 'sent') return;
      throw new DriverError('unsupported', 'The programs of the image cannot send this signal.');
    },
    resize({ rows, columns }) {
      client.terminal?.resize(columns, rows);
      return Promise.resolve();
    },
    close() {
      void client.control?.then((control) => control.close()).catch(() => undefined);
      left.abort();
    },
  };
}

function controlOf(client: Client): Promise<Control> {
  client.control ??= openControl(client.options.client, client.pod, client.ctx);
  return client.control;
}

async function openInput(client: Client): Promise<Writable | null> {
  const { options, pod, input, ctx } = client;
  if (input === null || hasProgramEnded(pod)) return null;
  const isTerminal = input === 'terminal';
  // Attached without its output, a node drops the connection at once (containerd 1.6): it is read and discarded.
  const more = isTerminal ? { tty: true } : { command: WRITE_COMMAND };
  const stream = await options.client.openPodStream(keyOf(pod), { container: CONTAINER, stdin: true, ...more }, ctx);
  stream.stdout.resume();
  stream.stderr.resume();
  if (isTerminal) {
    client.terminal = stream;
    stream.resize(SIZE.columns, SIZE.rows);
  }
  return inputOver(stream, isTerminal);
}

/** Closed when the program that copies it has passed everything on, or has ended. */
export function inputOver(stream: PodStream, isTerminal: boolean): Writable {
  const input = new Writable({
    write(chunk: Buffer, _encoding, done) {
      stream.stdin.write(chunk, (error) => done(error ?? null));
    },
    final(done) {
      if (isTerminal) stream.close();
      else stream.stdin.end();
      stream.exit.then(
        () => done(),
        () => done(),
      );
    },
    destroy(error, done) {
      stream.close();
      done(error);
    },
  });
  stream.exit.catch(() => undefined).finally(() => input.writableEnded || input.destroy());
  return input;
}

async function* outputOf(client: Client, replayBytes: number, signal: AbortSignal): ReturnType<Attachment['output']> {
  const { options, ref, pod, input } = client;
  const ctx = { signal, deadline: Infinity };
  if (input === null || hasProgramEnded(pod)) yield* followLog(options, ref, pod, replayBytes, ctx);
  else yield* joined(client, replayBytes, ctx);
  return signal.aborted ? null : untilExited(options, ref, ctx);
}

async function* joined(client: Client, replayBytes: number, ctx: DriverContext): AsyncGenerator<OutputPart> {
  const { options, pod, input } = client;
  const isTerminal = input === 'terminal';
  const stream = await options.client
    .openPodStream(keyOf(pod), { container: CONTAINER, tty: isTerminal }, ctx)
    .catch(() => null);
  // It has ended meanwhile, or the next connection will say what is wrong.
  if (stream === null) return yield* followLog(options, client.ref, pod, replayBytes, ctx);
  const outputs = openOutputs(stream);
  try {
    yield* beginning(client, outputs, replayBytes, ctx);
    for (let part = await outputs.next(); part !== null; part = await outputs.next()) if (part !== 'woken') yield part;
    if (!ctx.signal.aborted) await stream.exit;
  } finally {
    stream.close();
  }
}

/** Announces the client to the program that waits for it, or repeats what the client has missed. */
async function* beginning(
  client: Client,
  outputs: Outputs,
  replayBytes: number,
  ctx: DriverContext,
): AsyncGenerator<OutputPart> {
  const { options, pod } = client;
  const control = await controlOf(client);
  const name = randomBytes(CLIENT_BYTES).toString('hex');
  const isAnnounced = await announce(control, outputs, name, ctx);
  if (ctx.signal.aborted) return;
  if (isAnnounced) {
    if (client.terminal !== null || client.input === 'pipe') await control.order('go');
    return;
  }
  const past = await readTail(options, pod, replayBytes, ctx);
  const present = outputs.takeNow();
  const known = overlapOf(past, Buffer.concat(present.map(({ bytes }) => bytes)));
  if (past.length > 0) yield { stream: 'stdout', bytes: withoutMarks(past) };
  yield* withoutFirst(present, known);
}

/** Whether it came before the program. */
async function announce(control: Control, outputs: Outputs, name: string, ctx: DriverContext): Promise<boolean> {
  for (let isSeen = false; !ctx.signal.aborted;) {
    if ((await control.order(`mark ${name}`)) === 'started') return false;
    const again = setTimeout(() => outputs.wake(), MARK_AGAIN_MS);
    isSeen = await outputs.seesMark(name);
    clearTimeout(again);
    if (isSeen) return true;
  }
  return false;
}

/** Bytes at the end of the one that are the beginning of the other. */
export function overlapOf(past: Buffer, present: Buffer): number {
  for (let length = Math.min(past.length, present.length); length > 0; length -= 1)
    if (past.subarray(past.length - length).equals(present.subarray(0, length))) return length;
  return 0;
}

function* withoutFirst(parts: readonly OutputPart[], count: number): Generator<OutputPart> {
  let left = count;
  for (const { stream, bytes } of parts) {
    const rest = bytes.subarray(left);
    left = Math.max(0, left - bytes.length);
    if (rest.length > 0) yield { stream, bytes: rest };
  }
}
