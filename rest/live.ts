// Live tails: `Accept: text/event-stream` on an operation marked @live answers with server-sent events (HTML Living
// Standard, section 9.2) in place of a page. An event is a row of the list, its id the place to go on from.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Context } from '../core/context';
import { problem } from '../core/errors';
import { limits } from '../core/limits';

export interface LiveEvent {
  /** What `Last-Event-ID` says to go on after this event. */
  id: string;
  data: object;
}

/** How a list is followed. A resolver file exports `live: { listXLogs: … }`. */
export interface LiveReader {
  /** What is told when there may be something new: channel and key of a notification. */
  topic(args: Record<string, unknown>): { channel: string; key: string };
  /** Events after a place, in their order; null = the newest ones first of all. @throws not_found, invalid_cursor */
  read(args: Record<string, unknown>, ctx: Context, after: string | null): Promise<LiveEvent[]>;
}

/** Wakes those who wait for news, see server/news.ts. */
export interface News {
  /** Resolves when something was told about the key since `seen`, or after `ms`, or when aborted; answers the new mark. */
  wait(topic: { channel: string; key: string }, seen: number, ms: number, signal: AbortSignal): Promise<number>;
}

interface Stream {
  reader: LiveReader;
  args: Record<string, unknown>;
  ctx: Context;
  news: News;
  /** Last-Event-ID. */
  after: string | null;
  /** Aborted when the client is gone or the process stops. */
  signal: AbortSignal;
  /** Whether the key may still read; asked now and then. @throws where it may not */
  stillAllowed(): Promise<void>;
}

const HEARTBEAT_MS = 15_000;
const OPEN = new Map<string, number>();

export function wantsEvents(accept: string | undefined): boolean {
  return /(?:^|,)\s*text\/event-stream\s*(?:;|,|$)/i.test(accept ?? '');
}

/** Streams until the client goes, the process stops, or the key may no longer read. @throws rate_limited for too many streams */
export async function stream(response: ServerResponse, given: Stream): Promise<void> {
  const account = given.ctx.identity?.account_id ?? '';
  const open = OPEN.get(account) ?? 0;
  if (open >= limits.streamsPerAccount) throw problem('rate_limited', `An account may have ${limits.streamsPerAccount} streams open in one process.`, {}, { 'Retry-After': '10' });
  // Whatever is wrong with the request shows before the first byte.
  const first = await given.reader.read(given.args, given.ctx, given.after);
  OPEN.set(account, open + 1);
  try {
    response.writeHead(200, { ...given.ctx.reply.headers, 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' });
    await follow(response, given, first);
  } finally {
    OPEN.set(account, (OPEN.get(account) ?? 1) - 1);
    response.end();
  }
}

async function follow(response: ServerResponse, given: Stream, first: LiveEvent[]): Promise<void> {
  const topic = given.reader.topic(given.args);
  let after = given.after;
  let events = first;
  let seen = 0;
  let beatAt = performance.now() + HEARTBEAT_MS;
  await write(response, 'retry: 1000\n\n', given.signal);
  for (;;) {
    if (events.length) await write(response, events.map(frame).join(''), given.signal);
    after = events[events.length - 1]?.id ?? after;
    if (given.signal.aborted) return;
    // A full page: there is more to read at once.
    if (events.length < limits.logPageSizeDefault) seen = await given.news.wait(topic, seen, Math.max(0, beatAt - performance.now()), given.signal);
    if (given.signal.aborted) return;
    if (performance.now() >= beatAt) {
      await given.stillAllowed();
      await write(response, ': still here\n\n', given.signal);
      beatAt = performance.now() + HEARTBEAT_MS;
    }
    events = await given.reader.read(given.args, given.ctx, after);
  }
}

function frame({ id, data }: LiveEvent): string {
  return `id: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
}

// A client that does not read is waited for, not stored for.
async function write(response: ServerResponse, text: string, signal: AbortSignal): Promise<void> {
  if (signal.aborted || response.write(text)) return;
  await once(response, 'drain', { signal }).catch(() => {});
}
