// The WebSocket of a run (platform.run.v1) and this computer's standard input, output and terminal. After a broken
// connection the output goes on where it broke off: the server repeats what was received, and that is skipped.
import { setTimeout as sleep } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import { EXIT, Failure } from '../failure';
import { openTunnel, proxyFor } from '../http/proxy';
import { networkFailure } from '../http/retry';
import { notice } from '../output/notice';
import type { Row } from '../output/print';
import { clean } from '../output/terminal';
import { describeCall, problemOf, type Session } from '../session';
import { bindInput, type Input } from './input';
import { watchSilence } from './silence';

const PROTOCOL = 'platform.run.v1';
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, control: 3 } as const;
/** How often a connection is made again before one lasts for SETTLED_MS. */
const ATTEMPTS_MAX = 8;
/** A connection that broke off earlier counts as a failed attempt, whatever it brought: a prompt is no progress. */
const SETTLED_MS = 30_000;
const CODES = { normal: 1000, none: 1005 };
/** RFC 6455 section 7.4.1: the server is going away, the line was lost, an error or overload that may pass. */
const LOST = new Set([1001, 1006, 1011, 1012, 1013, 1014]);
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
    let attempt = 0;
    while (progress.exit === undefined) {
      const began = Date.now();
      const { code, reason } = await connectOnce(session, run, progress, input).catch((error: unknown) =>
        // The first connection fails for a reason that the person can mend.
        attempt > 0 && error instanceof Failure && error.exitCode === EXIT.retry
          ? { code: 1006, reason: error.message }
          : Promise.reject(error as Error),
      );
      if (code === CODES.none && progress.exit === undefined) continue;
      if (progress.exit !== undefined || code === CODES.normal) break;
      if (!LOST.has(code)) throw refusal(code, reason);
      attempt = Date.now() - began > SETTLED_MS ? 1 : attempt + 1;
      if (attempt > ATTEMPTS_MAX) throw exhausted(session, run, reason);
      notice(`The connection broke off. Connecting again (${attempt} of ${ATTEMPTS_MAX}).`);
      await sleep(Math.min(10_000, 125 * 2 ** attempt));
    }
  } finally {
    input.release();
  }
  return progress.exit?.code ?? null;
}

/** What the server will say again. It may know codes that this version does not. */
function refusal(code: number, reason: string): Failure {
  const why = clean(reason) || `it gave no reason (code ${code})`;
  const sentence = `The server ended the connection: ${why}`;
  return new Failure(sentence.endsWith('.') ? sentence : `${sentence}.`, EXIT.denied);
}

function exhausted(session: Session, run: Row, reason: string): Failure {
  const sentence = `The connection broke off ${ATTEMPTS_MAX + 1} times. ${clean(reason)}`.trim();
  return new Failure(sentence, EXIT.retry, [
    `The command goes on. See it: svc api getRun ${String(run.application_id)} ${String(run.id)}`,
    `Check the connection: svc doctor --url ${session.server}`,
  ]);
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
  const endWatch = watchSilence(ws);
  return new Promise((resolve) =>
    ws.once('close', (code, reason) => {
      endWatch();
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
