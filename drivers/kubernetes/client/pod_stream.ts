// Programs in pods, started (exec) or joined (attach), over a WebSocket: the protocol `v5.channel.k8s.io`, in which the
// first byte of a message says what it is about (Kubernetes' KEP 4006).
import type { IncomingMessage } from 'node:http';
import { Readable, Writable } from 'node:stream';
import type { Status } from 'kubernetes-types/meta/v1';
import { WebSocket, type RawData } from 'ws';
import type { DriverError } from '../../../core/driver';
import { type DriverContext } from '../../../core/driver';
import { connectionError, readAnswerText, type Connection } from './connection';
import { hasCode, KubernetesError, kubernetesRefusal, shorten } from './failure';
import { objectPath, objectSubject, resourceTypes, type ObjectName } from './resource_type';

export interface PodStreamOptions {
  /** Needed where the pod has more than one. */
  container?: string;
  /** Started in the container; without it, its own program is joined. */
  command?: readonly string[];
  stdin?: boolean;
  /** Standard output and error are one then. */
  tty?: boolean;
}

export interface PodExit {
  /** Null where the program was joined (the pod's status has its code), or could not be started. */
  code: number | null;
  /** Sentence of the cluster, where the program could not be started. */
  reason: string | null;
}

export interface PodStream {
  /** Takes as much as the program reads; its end is the end of standard input. Without `stdin` it is closed. */
  stdin: Writable;
  /** Both have to be read: what is not read stops the other too. */
  stdout: Readable;
  stderr: Readable;
  /** Of a terminal. */
  resize(columns: number, rows: number): void;
  /** Rejects with a DriverError where the connection breaks off. */
  exit: Promise<PodExit>;
  /** Leaves; a program that was started goes on or ends as the node decides. */
  close(): void;
}

const PROTOCOL = 'v5.channel.k8s.io';
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 };
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024;
const FRAME_BYTES = 32 * 1024;
const HANDSHAKE_MS = 30_000;
const REFUSAL_BYTES_MAX = 64 * 1024;
/** A connection that answers no ping for so long is given up. */
const PING_MS = 20_000;

/** @throws DriverError where the pod is not there, not running, or the cluster is older than 1.30 */
export async function openPodStream(
  connection: Connection,
  pod: ObjectName,
  options: PodStreamOptions,
  ctx: DriverContext,
): Promise<PodStream> {
  try {
    return streamOver(await connect(connection, pod, options, ctx), options);
  } catch (error) {
    if (!hasCode(error, 'unauthorized')) throw error;
    connection.forgetCredentials();
    return streamOver(await connect(connection, pod, options, ctx), options);
  }
}

async function connect(
  connection: Connection,
  pod: ObjectName,
  options: PodStreamOptions,
  ctx: DriverContext,
): Promise<WebSocket> {
  const { command, container, stdin = false, tty = false } = options;
  const path = objectPath(resourceTypes.pods, pod, command ? 'exec' : 'attach');
  const query = { container, stdin, stdout: true, stderr: !tty, tty };
  const { url, headers, tls } = await connection.upgradeOptions({ path, query }, ctx);
  for (const word of command ?? []) url.searchParams.append('command', word);
  url.protocol = 'wss:';
  const socket = new WebSocket(url, PROTOCOL, {
    ...{ ...tls, perMessageDeflate: false, maxPayload: MESSAGE_BYTES_MAX, handshakeTimeout: HANDSHAKE_MS },
    headers: { ...headers, 'User-Agent': 'platform-api' },
  });
  const abort = (): void => socket.terminate();
  ctx.signal.addEventListener('abort', abort, { once: true });
  socket.once('close', () => ctx.signal.removeEventListener('abort', abort));
  // Output may follow the handshake at once: nothing is lost before somebody listens.
  socket.once('open', () => socket.pause());
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.on('error', (error) => reject(handshakeError(error, ctx)));
    // Once there is a listener, the request is the listener's to end.
    socket.once('unexpected-response', (sent, response) => {
      void refusal(response, pod, ctx)
        .then(reject, reject)
        .finally(() => sent.destroy());
    });
  });
  return socket;
}

async function refusal(response: IncomingMessage, pod: ObjectName, ctx: DriverContext): Promise<KubernetesError> {
  const body = await readAnswerText(response, REFUSAL_BYTES_MAX, ctx.signal).catch(() => '');
  return kubernetesRefusal(response.statusCode ?? 0, body, objectSubject(resourceTypes.pods, pod));
}

function handshakeError(error: Error, ctx: DriverContext): DriverError {
  if (/subprotocol/i.test(error.message))
    return new KubernetesError(
      'unsupported',
      'The cluster does not offer streams of pods as this platform needs them: it needs Kubernetes 1.30 or newer.',
      'api_absent',
    );
  return connectionError(error, ctx);
}

function streamOver(socket: WebSocket, { stdin = false, command }: PodStreamOptions): PodStream {
  const outputs = outputsOf(socket);
  const input = inputOf(socket);
  const pings = keepAlive(socket);
  const exit = new Promise<PodExit>((resolve, reject) => {
    socket.on('message', (data: RawData) => {
      const message = data as Buffer;
      const [channel = -1] = message;
      if (channel === CHANNEL.error) resolve(exitOf(message.toString('utf8', 1), command ? 'started' : 'joined'));
      else outputs.push(channel, message.subarray(1));
    });
    socket.once('close', () => {
      clearInterval(pings);
      outputs.end();
      input.destroy();
      reject(new KubernetesError('transient', 'The connection to the pod broke off.', 'unreachable'));
    });
  });
  // Whoever is not interested in it need not handle it.
  exit.catch(() => undefined);
  if (!stdin) input.end();
  socket.resume();
  return {
    stdin: input,
    stdout: outputs.stdout,
    stderr: outputs.stderr,
    resize: (columns, rows) =>
      void socket.send(message(CHANNEL.resize, Buffer.from(JSON.stringify({ Width: columns, Height: rows })))),
    exit,
    close() {
      socket.resume();
      socket.close();
    },
  };
}

interface Outputs {
  stdout: Readable;
  stderr: Readable;
  push(channel: number, content: Buffer): void;
  end(): void;
}

/** While one of them has more than it wants, the connection as a whole is not read. */
function outputsOf(socket: WebSocket): Outputs {
  const full = new Set<number>();
  const wants = (channel: number): void => {
    if (full.delete(channel) && full.size === 0) socket.resume();
  };
  // Once destroyed, it must not keep the other waiting for ever.
  const open = (channel: number): Readable =>
    new Readable({ read: () => wants(channel) }).once('close', () => wants(channel));
  const streams: Record<number, Readable> = {
    [CHANNEL.stdout]: open(CHANNEL.stdout),
    [CHANNEL.stderr]: open(CHANNEL.stderr),
  };
  return {
    stdout: streams[CHANNEL.stdout] as Readable,
    stderr: streams[CHANNEL.stderr] as Readable,
    push(channel, content) {
      const stream = streams[channel];
      // Each begins with an empty message.
      if (!stream || stream.destroyed || content.length === 0 || stream.push(content)) return;
      full.add(channel);
      socket.pause();
    },
    end() {
      for (const stream of Object.values(streams)) stream.push(null);
    },
  };
}

function inputOf(socket: WebSocket): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      sendFrames(socket, chunk).then(() => done(), done);
    },
    final(done) {
      if (socket.readyState !== WebSocket.OPEN) return done();
      socket.send(Buffer.from([CHANNEL.close, CHANNEL.stdin]), () => done());
    },
  }).on('error', () => undefined);
}

/** Each resolves once it was handed to the kernel: what the program does not read stays with the writer. */
async function sendFrames(socket: WebSocket, chunk: Buffer): Promise<void> {
  for (let from = 0; from < chunk.length; from += FRAME_BYTES) {
    const frame = message(CHANNEL.stdin, chunk.subarray(from, from + FRAME_BYTES));
    await new Promise<void>((resolve, reject) => socket.send(frame, (error) => (error ? reject(error) : resolve())));
  }
}

const message = (channel: number, content: Buffer): Buffer => Buffer.concat([Buffer.from([channel]), content]);

function keepAlive(socket: WebSocket): NodeJS.Timeout {
  let answered = true;
  socket.on('pong', () => (answered = true));
  return setInterval(() => {
    // A paused connection cannot hear an answer.
    if (!answered && !socket.isPaused) return socket.terminate();
    answered = false;
    socket.ping();
  }, PING_MS);
}

/** The last message: a Status, with the exit code as a cause where it is not 0; it has none of a program joined. */
function exitOf(text: string, program: 'started' | 'joined'): PodExit {
  const status = parseExit(text);
  if (status?.status === 'Success') return { code: program === 'started' ? 0 : null, reason: null };
  const cause = status?.details?.causes?.find(({ reason }) => reason === 'ExitCode');
  if (cause && /^\d+$/.test(cause.message ?? '')) return { code: Number(cause.message), reason: null };
  return { code: null, reason: shorten(status?.message ?? 'The cluster did not say how the program ended.') };
}

function parseExit(text: string): Status | null {
  try {
    return JSON.parse(text) as Status | null;
  } catch {
    return null;
  }
}
