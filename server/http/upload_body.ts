// Bodies of uploads, which may take long, and their end after a rejection.
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { problem } from '../../core/errors';

/** How long a sender may be silent. */
const SILENCE_MS = 30_000;
/** After a rejection, the rest of the body is read for this long, so that the response reaches the client. */
const LINGER_MS = 2_000;

/** The body, as long as its sender is not silent. The connection stays for the answer. @throws request_timeout */
export async function* uploadBody(request: IncomingMessage): AsyncGenerator<Buffer> {
  const pieces = (request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  for (;;) {
    const silence = new AbortController();
    const silent = sleep(SILENCE_MS, null, { signal: silence.signal }).catch(() => null);
    const next = await Promise.race([pieces.next(), silent]).finally(() => silence.abort());
    if (next === null) throw problem('request_timeout');
    if (next.done) return;
    yield next.value;
  }
}

/** A sender that still writes may not read the answer: with a reset at once it would be lost. */
export async function linger(request: IncomingMessage): Promise<void> {
  if (request.complete || request.destroyed) return;
  request.resume();
  await Promise.race([new Promise((resolve) => request.once('close', resolve)), sleep(LINGER_MS)]);
  request.destroy();
}
