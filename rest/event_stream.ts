// Streams of events: `Accept: text/event-stream` on an operation marked @live answers with server-sent events (HTML
// Living Standard, section 9.2) in place of a page. An event is a row of the list, its id the position to continue
// from. The last one says why the stream ended.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { startFollowing, type FollowOptions, type LiveEvent } from '../contract/live';
import type { Context } from '../core/context';
import { problem, toDocument, type Problem } from '../core/errors';
import { limits } from '../core/limits';
import { asProblem } from './problem';
import { NOSNIFF } from './send_text';

/** Events of one response, on either face. */
export interface EventStream {
  /**
   * Waits for a client that does not read, rather than storing for it.
   * @throws the problem that ends the caller's access meanwhile
   */
  write(text: string): Promise<void>;
  /** Sends the last text. A client that does not take it is cut off. */
  end(text: string): void;
}

/** Proxies close idle connections, often after 30 seconds. */
const HEARTBEAT_MS = 12_000;
/** Maximum age of the last access check of the caller when events are sent or queued. */
const ACCESS_CHECK_MS = 5_000;
const LAST_WRITE_MS = 3_000;
const openStreams = new Map<string, number>();

/**
 * Streams until the client goes, the process stops, or the caller may no longer read.
 * @throws rate_limited for too many streams; the error that ended the stream, after it was sent to the client
 */
export async function sendEventStream(response: ServerResponse, given: FollowOptions): Promise<void> {
  const { ctx, signal } = given;
  const leave = countStream(ctx);
  try {
    // Whatever is wrong with the request shows before the first byte.
    const batches = await startFollowing(given);
    const stream = openEventStream(response, ctx, signal);
    // HEAD gets the headers of the stream, whose end it cannot await.
    if (response.req.method === 'HEAD') return stream.end('');
    await sendEvents(stream, batches).catch((error: unknown) => {
      stream.end(formatEnd(response, ctx, asProblem(error)));
      throw error;
    });
    stream.end(formatEnd(response, ctx, stopping()));
  } finally {
    leave();
  }
}

/** The problem with which streams end when the process stops. */
export function stopping(): Problem {
  return problem('service_unavailable', 'The server is stopping. Connect again.');
}

/** Begins the response. The signal is aborted when the client is gone or the process stops. */
export function openEventStream(response: ServerResponse, ctx: Context, signal: AbortSignal): EventStream {
  response.writeHead(200, {
    'X-Request-Id': ctx.request_id,
    ...ctx.reply.headers,
    ...NOSNIFF,
    'Content-Type': 'text/event-stream',
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
  });
  // The headers go with the first byte.
  response.write(':\n\n');
  const heartbeat = setInterval(() => {
    if (!response.writableNeedDrain) response.write(':\n\n');
  }, HEARTBEAT_MS);
  const stopHeartbeat = (): void => clearInterval(heartbeat);
  response.once('close', stopHeartbeat);
  let checkAt = performance.now() + ACCESS_CHECK_MS;
  const requireAccess = async (): Promise<void> => {
    if (performance.now() < checkAt) return;
    await ctx.readmit?.();
    checkAt = performance.now() + ACCESS_CHECK_MS;
  };
  return {
    async write(text) {
      await requireAccess();
      if (signal.aborted || response.write(text)) return;
      while (!signal.aborted && response.writableNeedDrain) {
        await drained(response, AbortSignal.any([signal, AbortSignal.timeout(ACCESS_CHECK_MS)]));
        await requireAccess();
      }
    },
    end(text) {
      stopHeartbeat();
      const cut = setTimeout(() => response.destroy(), LAST_WRITE_MS);
      response.once('close', () => clearTimeout(cut));
      response.end(text);
    },
  };
}

function drained(response: ServerResponse, signal: AbortSignal): Promise<unknown> {
  return once(response, 'drain', { signal }).catch(() => {});
}

/** Counts a stream of the caller's account. @throws rate_limited */
export function countStream({ identity }: Context): () => void {
  const account = identity?.account_id ?? '';
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

async function sendEvents(stream: EventStream, batches: AsyncGenerator<LiveEvent[], void>): Promise<void> {
  await stream.write('retry: 1000\n\n');
  for await (const events of batches) await stream.write(formatEvents(events));
}

function formatEvents(events: LiveEvent[]): string {
  return events.map(({ id, data }) => `id: ${id}\ndata: ${JSON.stringify(data)}\n\n`).join('');
}

/** A client that connects again gets the same problem as the answer, where it lasts. */
function formatEnd({ req }: ServerResponse, { config, request_id }: Context, failure: Problem): string {
  const instance = (req.url ?? '/').split('?')[0] as string;
  const document = toDocument(failure, { base_url: config.baseUrl, request_id, instance });
  return `event: problem\ndata: ${JSON.stringify(document)}\n\n`;
}
