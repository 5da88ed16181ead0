// The WebSocket of a run (platform.run.v1) and this computer's standard input, output and terminal. After a broken
// connection the output goes on where it broke off: the server repeats what was received, and that is skipped.
import { setTimeout as sleep } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import { EXIT, Failure } from '../failure';
import { openTunnel, proxyFor } from '../http/proxy';
import { networkFailure } from '../http/retry';
import { notice } from '../output/notice';
import type { Row } from '../output/print';
import { describeCall, problemOf, type Session } from '../session';
import { bindInput, type Input } from './input';

const PROTOCOL = 'platform.run.v1';
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, control: 3 } as const;
const ATTEMPTS_MAX = 8;
const CODES = { normal: 1000, none: 1005, policy: 1008 };
/** All of it: what was received already is skipped. */
const REPLAY_BYTES = 2 ** 40;

/** A right to write that is still another connection's, perhaps of our own, is asked for so often. */
const WRITER = { attempts: 6, afterMs: 3_000 };

interface Progress {
  received: Record<1 | 2, number>;
  exit: { code: number | null } | undefined;
  /** How often the server had another writer, or a command that reads no more. */
  declined: number;
}

/** Takes part in the run until it has ended. @returns the exit code of its command */
export async function attachToRun(session: Session, run: Row): Promise<number | null> {
  const progress: Progress = { received: { 1: 0, 2: 0 }, exit: undefined, declined: 0 };
  const input = bindInput(run.tty === true);
  try {
    for (let attempt = 0; progress.exit === undefined; attempt += 1) {
      const before = progress.received[1] + progress.received[2];
      const { code, reason } = await connectOnce(session, run, progress, input);
      if (code === CODES.none && progress.exit === undefined) continue;
      if (progress.exit !== undefined || code === CODES.normal) break;
      if (code === CODES.policy) throw new Failure(`The server ended the connection: ${reason}.`, EXIT.denied);
      if (progress.received[1] + progress.received[2] > before) attempt = 0;
      if (attempt >= ATTEMPTS_MAX) throw new Failure(`The connection broke off. ${reason}`, EXIT.retry);
      notice('The connection broke off. Connecting again.');
      await sleep(Math.min(10_000, 250 * 2 ** attempt));
    }
  } finally {
    input.release();
  }
  return progress.exit?.code ?? null;
}

async function connectOnce(
  session: Session,
  run: Row,
  progress: Progress,
  input: Input,
): Promise<{ code: number; reason: string }> {
  const path = `/v2/applications/${String(run.application_id)}/runs/${String(run.id)}/attach`;
  const ws = await open(session, path);
  const skip = { ...progress.received };
  ws.on('message', (data: Buffer) => {
    const channel = data[0];
    if (channel === CHANNEL.control) return obey(JSON.parse(data.subarray(1).toString()) as Row, ws, progress, input);
    if (channel !== CHANNEL.stdout && channel !== CHANNEL.stderr) return;
    const fresh = data.subarray(1 + Math.min(skip[channel], data.length - 1));
    skip[channel] -= data.length - 1 - fresh.length;
    progress.received[channel] += fresh.length;
    const stream = channel === CHANNEL.stdout ? process.stdout : process.stderr;
    if (stream.write(fresh)) return;
    ws.pause();
    stream.once('drain', () => ws.resume());
  });
  ws.resume();
  return new Promise((resolve) =>
    ws.once('close', (code, reason) => {
      input.detach();
      resolve({ code, reason: reason.toString() });
    }),
  );
}

function obey(message: Row, ws: WebSocket, progress: Progress, input: Input): void {
  const send = (channel: number, bytes: Buffer): Promise<void> =>
    new Promise((resolve) => ws.send(Buffer.concat([Buffer.of(channel), bytes]), () => resolve()));
  if (message.type === 'exit') progress.exit = { code: typeof message.code === 'number' ? message.code : null };
  if (message.type === 'error') notice(String(message.message));
  if (message.type !== 'ready') return;
  if (message.writer === true)
    return input.attach({
      input: (bytes) => send(CHANNEL.stdin, bytes),
      command: (command) => send(CHANNEL.control, Buffer.from(JSON.stringify(command))),
    });
  progress.declined += 1;
  if (progress.declined > WRITER.attempts) return;
  const again = setTimeout(() => ws.close(), WRITER.afterMs);
  ws.once('close', () => clearTimeout(again));
}

/** Paused: what comes together with the handshake waits for its reader. @throws ProblemFailure, Failure */
async function open(session: Session, path: string): Promise<WebSocket> {
  const { url, headers } = await describeCall(session, path, { query: { replay_bytes: REPLAY_BYTES } });
  const proxy = url.protocol === 'https:' ? proxyFor(url) : undefined;
  const socket = proxy && (await openTunnel(proxy, url));
  // Loaded by those who need it alone.
  const { WebSocket: Client } = await import('ws');
  const address = url.href.replace(/^http/, 'ws');
  const ws = new Client(address, [PROTOCOL], {
    headers,
    perMessageDeflate: false,
    ...(socket && { createConnection: () => socket }),
  });
  return new Promise((resolve, reject) => {
    ws.once('unexpected-response', (_, response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.once('end', () =>
        reject(
          problemOf(session, {
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(parts).toString('utf8'),
          }),
        ),
      );
    });
    ws.once('error', (error) => reject(networkFailure(url, error)));
    ws.once('open', () => {
      ws.pause();
      resolve(ws.off('error', reject).on('error', () => ws.terminate()));
    });
  });
}
