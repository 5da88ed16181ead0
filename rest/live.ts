// Live tails: `Accept: text/event-stream` on an operation marked @live answers with server-sent events (HTML Living
// Standard, section 9.2) in place of a page. An event is a row of the list, its id the place to go on from.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { problem } from '../core/errors';
import { limits } from '../core/limits';
import { follow, type Following, type LiveEvent } from '../contract/live';

interface Stream extends Following {
  /** Whether the key may still read; asked now and then. @throws where it may not */
  stillAllowed(): Promise<void>;
}

const ASK_AGAIN_MS = 15_000;
const open = new Map<string, number>();

export function wantsEvents(accept: string | undefined): boolean {
  return /(?:^|,)\s*text\/event-stream\s*(?:;|,|$)/i.test(accept ?? '');
}

/** Streams until the client goes, the process stops, or the key may no longer read. @throws rate_limited for too many streams */
export async function stream(response: ServerResponse, given: Stream): Promise<void> {
  const account = given.ctx.identity?.account_id ?? '';
  const leave = enter(account);
  try {
    // Whatever is wrong with the request shows before the first byte.
    await given.reader.read(given.args, given.ctx, given.after);
    response.writeHead(200, {
      'X-Request-Id': given.ctx.request_id,
      ...given.ctx.reply.headers,
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
    });
    await write(response, 'retry: 1000\n\n', given.signal);
    await send(response, given);
    response.end();
  } catch (error) {
    if (!response.headersSent) throw error;
    // The client comes back with Last-Event-ID and is told then what is wrong.
    response.end();
  } finally {
    leave();
  }
}

/** Counts a stream of the account. @throws rate_limited */
export function enter(account: string): () => void {
  const count = open.get(account) ?? 0;
  if (count >= limits.streamsPerAccount)
    throw problem(
      'rate_limited',
      `An account may have ${limits.streamsPerAccount} streams open in one process.`,
      {},
      { 'Retry-After': '10' },
    );
  open.set(account, count + 1);
  return () => {
    const left = (open.get(account) ?? 1) - 1;
    if (left) open.set(account, left);
    else open.delete(account);
  };
}

async function send(response: ServerResponse, given: Stream): Promise<void> {
  let askAt = performance.now() + ASK_AGAIN_MS;
  for await (const events of follow(given)) {
    await write(response, events.length ? events.map(frame).join('') : ': still here\n\n', given.signal);
    if (performance.now() < askAt) continue;
    await given.stillAllowed();
    askAt = performance.now() + ASK_AGAIN_MS;
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
