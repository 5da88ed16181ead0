// Live tails: `Accept: text/event-stream` on an operation marked @live answers with server-sent events (HTML Living
// Standard, section 9.2) in place of a page. An event is a row of the list, its id the position to continue from.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { problem } from '../core/errors';
import { limits } from '../core/limits';
import { NOSNIFF } from './send_text';
import { follow, type FollowOptions, type LiveEvent } from '../contract/live';

interface EventStream extends FollowOptions {
  /** Checks periodically that the key may still read. @throws the problem that refuses it */
  requireAccess(): Promise<void>;
}

const ACCESS_CHECK_MS = 15_000;
const openStreams = new Map<string, number>();

export function acceptsEventStream(accept: string | undefined): boolean {
  return /(?:^|,)\s*text\/event-stream\s*(?:;|,|$)/i.test(accept ?? '');
}

/**
 * Streams until the client goes, the process stops, or the key may no longer read. @throws rate_limited for too many
 * streams
 */
export async function sendEventStream(response: ServerResponse, given: EventStream): Promise<void> {
  const account = given.ctx.identity?.account_id ?? '';
  const leave = countStream(account);
  try {
    // Whatever is wrong with the request shows before the first byte.
    await given.reader.read(given.args, given.ctx, given.after);
    response.writeHead(200, {
      'X-Request-Id': given.ctx.request_id,
      ...given.ctx.reply.headers,
      ...NOSNIFF,
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
    });
    await writeChunk(response, 'retry: 1000\n\n', given.signal);
    await sendEvents(response, given);
    response.end();
  } catch (error) {
    if (!response.headersSent) throw error;
    // The client reconnects with Last-Event-ID and gets the error as an ordinary answer.
    response.end();
  } finally {
    leave();
  }
}

/** Counts a stream of the account. @throws rate_limited */
export function countStream(account: string): () => void {
  const count = openStreams.get(account) ?? 0;
  if (count >= limits.streamsPerAccount)
    throw problem(
      'rate_limited',
      `An account may have ${limits.streamsPerAccount} streams open in one process.`,
      {},
      { 'Retry-After': '10' },
    );
  openStreams.set(account, count + 1);
  return () => {
    const left = (openStreams.get(account) ?? 1) - 1;
    if (left) openStreams.set(account, left);
    else openStreams.delete(account);
  };
}

async function sendEvents(response: ServerResponse, given: EventStream): Promise<void> {
  let askAt = performance.now() + ACCESS_CHECK_MS;
  for await (const events of follow(given)) {
    await writeChunk(response, formatEvents(given, events), given.signal);
    if (performance.now() < askAt) continue;
    await given.requireAccess();
    askAt = performance.now() + ACCESS_CHECK_MS;
  }
}

function formatEvents({ ctx }: EventStream, events: LiveEvent[]): string {
  if (!events.length) return ': still here\n\n';
  return events.map(({ id, data }) => `id: ${ctx.cursors.conceal(id)}\ndata: ${JSON.stringify(data)}\n\n`).join('');
}

// A client that does not read is waited for, not stored for.
async function writeChunk(response: ServerResponse, text: string, signal: AbortSignal): Promise<void> {
  if (signal.aborted || response.write(text)) return;
  await once(response, 'drain', { signal }).catch(() => {});
}
