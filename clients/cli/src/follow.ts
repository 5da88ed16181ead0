// Following a stream: it goes on after the last event where a connection broke, or the token was renewed.
import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT, Failure, ProblemFailure, type Problem } from './failure';
import { readEvents } from './http/events';
import { networkFailure } from './http/retry';
import { notice } from './output/notice';
import type { Row } from './output/print';
import type { Call, Session } from './session';

const ATTEMPTS_MAX = 8;

/**
 * Hands over each row, until the signal ends it.
 * @throws the problem that ended the stream; Failure where the connection cannot be made again
 */
export async function followEvents(
  session: Session,
  path: string,
  query: Call['query'],
  handle: (row: Row) => void,
  signal: AbortSignal = new AbortController().signal,
): Promise<void> {
  const at: { id: string | undefined } = { id: undefined };
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    const before = at.id;
    const token = await session.tokens.read();
    try {
      await readStream(session, path, query, at, handle, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (at.id !== before) attempt = 0;
      await recover(session, error, token, attempt);
      continue;
    }
    if (at.id !== before) attempt = 0;
    if (!signal.aborted) await recover(session, undefined, token, attempt);
  }
}

async function readStream(
  session: Session,
  path: string,
  query: Call['query'],
  at: { id: string | undefined },
  handle: (row: Row) => void,
  signal: AbortSignal,
): Promise<void> {
  for await (const event of readEvents(await session.stream(path, query, at.id, signal))) {
    const row = JSON.parse(event.data) as Row;
    if (event.type === 'problem') throw new ProblemFailure(row as Problem, Number(row.status));
    if (event.id) at.id = event.id;
    handle(row);
  }
}

/** Waits, or renews the token. @throws what cannot be helped */
async function recover(session: Session, error: unknown, token: string, attempt: number): Promise<void> {
  if (error instanceof ProblemFailure) {
    if (error.status === 401) {
      // Another process may have renewed it meanwhile.
      if (attempt < 2 && (await session.tokens.renew(token)) !== undefined) return;
      throw new Failure(`The login has ended: ${error.message}`, EXIT.denied, [
        `Run: svc login --url ${session.server}`,
      ]);
    }
    if (error.exitCode !== EXIT.retry) throw error;
  }
  if (attempt >= ATTEMPTS_MAX) {
    if (error === undefined) throw new Failure('The server keeps ending the stream.', EXIT.retry);
    throw networkFailure(new URL(session.server), error);
  }
  if (attempt > 0) notice('The connection broke off. Connecting again.');
  await sleep(Math.min(10_000, 250 * 2 ** attempt));
}
