// A client at a run: its WebSocket on one side, the files and the input of the unit on the other. Nothing is stored for
// a client that does not read: the next part of a file is read when the one before was sent. The input is not read
// faster than the program reads.
import type { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RawData, WebSocket } from 'ws';
import type { Arguments } from '../../contract/admission';
import type { Context } from '../../core/context';
import { limits } from '../../core/limits';
import { asProblem } from '../../rest/problem';
import { DriverError } from '../../core/driver';
import type { Attachment } from '../../drivers/runtime/attachment';
import { codeOfSignal } from '../../jobs/runs/run/result';
import { Run } from '../../models/runs/run';
import { acquireOrTakeOver, acquireWriter, releaseWriter, RENEW_WRITER_MS } from '../../models/runs/run/writer';
import type { Platform } from '../platform/platform';
import type { Attachments } from './attachments';
import { controlMessage, frame, parseFrame, type Command } from './frames';
import { isWriterGone, mintWriterName } from './writer_name';

interface Client {
  ctx: Context;
  run: Run;
  args: Arguments;
}

/** Proxies close connections that were idle for a minute. */
const PING_MS = 30_000;
/** Where no notification comes. */
const ACCESS_CHECK_MS = 2_000;
const ACCESS_RETRY_MS = 500;
const ROW_CHECK_MS = 1_000;
/** A unit that runs elsewhere is not to be found here. */
const UNIT_WITHIN_MS = 10_000;
const CLOSE_WITHIN_MS = 3_000;
/** RFC 6455 section 7.4.1. */
const CODES = { normal: 1000, goingAway: 1001, protocol: 1002, policy: 1008, failed: 1011 };

/** Serves the client until the run has ended or the client has gone. Never throws. */
export async function serveClient(
  platform: Platform,
  attachments: Attachments,
  ws: WebSocket,
  client: Client,
): Promise<void> {
  const gone = new AbortController();
  const end = endOf(ws);
  ws.on('error', () => ws.terminate()).once('close', () => gone.abort());
  ws.pause();
  const signal = AbortSignal.any([gone.signal, platform.closing.signal]);
  const stopping = (): void => end(CODES.goingAway, 'The server is stopping. Connect again.');
  platform.closing.signal.addEventListener('abort', stopping, { once: true });
  const checks = keepChecked(platform, ws, client.ctx, { signal, end });
  try {
    const attachment = await findUnit(attachments, client, signal);
    if (signal.aborted) return attachment?.close();
    if (attachment === null) return await endWithoutUnit(ws, client, end, attachments);
    const { mayStillWrite } = checks;
    await exchange(ws, client, attachment, { signal, end, mayStillWrite }).finally(() => attachment.close());
  } catch (error) {
    if (signal.aborted) return;
    platform.log.warn({ err: error, run: client.run.id }, 'a client of a run was cut off');
    // Of a cluster that is away, or that refuses.
    end(CODES.failed, error instanceof DriverError ? closingReason(error.message) : INTERNAL_ERROR);
  } finally {
    checks.stop();
    platform.closing.signal.removeEventListener('abort', stopping);
  }
}

const INTERNAL_ERROR = 'The platform met an internal error.';

/** RFC 6455 section 5.5: 125 bytes with the code. */
function closingReason(message: string): string {
  let text = message.slice(0, 123);
  while (Buffer.byteLength(text) > 123) text = text.slice(0, -1);
  return text;
}

type End = (code: number, reason: string) => void;

/** Closes politely, and cuts off a client that does not answer. */
function endOf(ws: WebSocket): End {
  return (code, reason) => {
    ws.resume();
    ws.close(code, reason);
    const cut = setTimeout(() => ws.terminate(), CLOSE_WITHIN_MS);
    ws.once('close', () => clearTimeout(cut));
  };
}

interface Checks {
  /** False once the caller may not attach any more. Waits while that cannot be known. */
  mayStillWrite(): Promise<boolean>;
  stop(): void;
}

/** Pings, and ends the connection when the caller may not attach any more: at once where a key is revoked. */
function keepChecked(
  { identities }: Platform,
  ws: WebSocket,
  ctx: Context,
  { signal, end }: { signal: AbortSignal; end: End },
): Checks {
  let unanswered = 0;
  ws.on('pong', () => (unanswered = 0));
  const ping = setInterval(() => {
    // What a paused client answers is not read.
    if (!ws.isPaused) unanswered += 1;
    if (unanswered > 3) ws.terminate();
    else ws.ping();
  }, PING_MS);
  let isAllowed = true;
  /** null where it is not known: the database is away. */
  const check = async (): Promise<boolean | null> => {
    try {
      await ctx.readmit?.();
      return isAllowed;
    } catch (error) {
      const { code, status } = asProblem(error);
      if (status >= 500) return null;
      if (isAllowed) end(CODES.policy, code);
      isAllowed = false;
      return false;
    }
  };
  const checking = setInterval(check, ACCESS_CHECK_MS);
  const forgetListener = identities.onForget(() => void check());
  return {
    async mayStillWrite() {
      let known = await check();
      while (known === null && !signal.aborted) {
        ws.pause();
        await sleep(ACCESS_RETRY_MS, undefined, { signal }).catch(() => undefined);
        known = await check();
      }
      return known === true;
    },
    stop() {
      clearInterval(ping);
      clearInterval(checking);
      forgetListener();
    },
  };
}

/** The unit once it has been started; null where the run has ended without one, or has one elsewhere. */
async function findUnit(attachments: Attachments, client: Client, signal: AbortSignal): Promise<Attachment | null> {
  const { ctx } = client;
  const isWaiting = (): boolean => ['queued', 'starting'].includes(client.run.status);
  let [checkedAt, runningSince] = [performance.now(), isWaiting() ? null : performance.now()];
  while (!signal.aborted) {
    const found = await attachments.find(client.run, !client.args.read_only);
    if (found) return found;
    if (client.run.finished_at !== null) return null;
    const now = performance.now();
    if (runningSince !== null && now - runningSince > UNIT_WITHIN_MS) return null;
    if (now - checkedAt > ROW_CHECK_MS) {
      client.run = await Run.ofApplication(ctx, client.run.application_id, client.run.id);
      checkedAt = now;
      if (!isWaiting()) runningSince ??= now;
    }
    await sleep(attachments.everyMs, undefined, { signal }).catch(() => undefined);
  }
  return null;
}

async function endWithoutUnit(ws: WebSocket, { run }: Client, end: End, attachments: Attachments): Promise<void> {
  if (run.finished_at === null) return end(CODES.failed, attachments.unfound(run));
  ws.send(controlMessage({ type: 'exit', code: run.exit_code, signal: run.signal }));
  end(CODES.normal, run.status);
}

interface Exchange extends Pick<Checks, 'mayStillWrite'> {
  signal: AbortSignal;
  end: End;
}

async function exchange(
  ws: WebSocket,
  client: Client,
  attachment: Attachment,
  { signal, end, mayStillWrite }: Exchange,
): Promise<void> {
  const { run, args } = client;
  const writer = run.detached || args.read_only ? null : await becomeWriter(ws, client, attachment, end);
  ws.send(controlMessage({ type: 'ready', writer: writer !== null, tty: run.tty }));
  const receiver = { writer, attachment, run, end, mayStillWrite };
  let turn = Promise.resolve();
  // In their order: what is typed after a change of the size finds it done. None is read while another is looked at.
  ws.on('message', (data: RawData, isBinary: boolean) => {
    if (ws.readyState !== ws.OPEN) return;
    ws.pause();
    turn = turn.then(() => receive(ws, data, isBinary, receiver));
  });
  ws.resume();
  try {
    const output = attachment.output((args.replay_bytes as number | null) ?? limits.runReplayBytes, signal);
    for (let part = await output.next(); ; part = await output.next()) {
      if (signal.aborted) return;
      if (part.done) {
        const code = part.value && (part.value.code ?? codeOfSignal(part.value.signal));
        ws.send(controlMessage({ type: 'exit', code: code ?? null, signal: part.value?.signal ?? null }));
        return end(CODES.normal, 'The run has ended.');
      }
      await send(ws, frame(part.value.stream, part.value.bytes));
    }
  } finally {
    // What the client sent before it went is still for the program.
    await Promise.race([turn, sleep(CLOSE_WITHIN_MS, undefined, { ref: false })]);
    await writer?.leave();
  }
}

/** Resolves when the message is on its way; a client that does not read holds it up. */
function send(ws: WebSocket, message: Buffer): Promise<void> {
  return new Promise((resolve) => ws.send(message, () => resolve()));
}

interface Writer {
  input: Writable;
  leave(): Promise<void>;
}

/** null where another client writes, or nothing reads. */
async function becomeWriter(
  ws: WebSocket,
  { ctx, run }: Client,
  attachment: Attachment,
  end: End,
): Promise<Writer | null> {
  const name = mintWriterName();
  if (!(await acquireOrTakeOver(ctx.sql, run.id, name, isWriterGone))) return null;
  const input = await attachment.openInput();
  if (input === null) return releaseWriter(ctx.sql, run.id, name).then(() => null);
  // The program has closed its input: what comes for it is dropped.
  input.on('error', () => input.destroy()).on('drain', () => ws.resume());
  input.once('close', () => ws.resume());
  const renew = setInterval(() => {
    acquireWriter(ctx.sql, run.id, name).then(
      (isOurs) => void (isOurs || end(CODES.failed, 'Another client writes to the run.')),
      () => undefined, // the database is away; the right ends by itself
    );
  }, RENEW_WRITER_MS);
  return {
    input,
    async leave() {
      clearInterval(renew);
      input.end();
      await releaseWriter(ctx.sql, run.id, name).catch(() => undefined);
    },
  };
}

interface Receiver extends Pick<Checks, 'mayStillWrite'> {
  writer: Writer | null;
  attachment: Attachment;
  run: Run;
  end: End;
}

/** Has the next message read, unless the program has to read first or the connection ends. */
async function receive(ws: WebSocket, data: RawData, isBinary: boolean, receiver: Receiver): Promise<void> {
  const message = isBinary ? parseFrame(data as Buffer) : null;
  if (message === null) return receiver.end(CODES.protocol, 'The message is none of the protocol.');
  const { writer } = receiver;
  if (writer === null) {
    await send(ws, controlMessage({ type: 'error', message: ONLY_READS }));
    return ws.resume();
  }
  if (!(await receiver.mayStillWrite())) return;
  if ('input' in message) {
    const isRead = !writer.input.destroyed && !writer.input.writableEnded && message.input.length > 0;
    if (isRead) writer.input.write(message.input);
  } else {
    await obey(message.command, writer, receiver).catch((error: unknown) => {
      const known = error instanceof DriverError ? error.message : null;
      const text = known ?? `The platform could not do what ${message.command.type} asks for.`;
      ws.send(controlMessage({ type: 'error', message: text }));
    });
  }
  if (!writer.input.writableNeedDrain) ws.resume();
}

const ONLY_READS = 'This client only reads: the run has another writer.';
const END_OF_TRANSMISSION = '\u0004';

async function obey(command: Command, { input }: Writer, { attachment, run }: Receiver): Promise<void> {
  if (command.type === 'resize') return void (run.tty && (await attachment.resize(command)));
  if (command.type === 'signal') return attachment.sendSignal(command.signal);
  if (run.tty) return void input.write(END_OF_TRANSMISSION);
  if (input.writableEnded) return;
  input.end();
  input.once('close', () => attachment.endInput());
}
