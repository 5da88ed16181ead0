// Requests that issue or revoke tokens: each runs in one transaction, and is answered after its end.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from '../../core/context';
import type { Problem } from '../../core/errors';
import { readRawBody } from '../http/raw_request';
import { isFailedAttempt } from './failed_attempt';

/** The problem that an address meets whose token or code is wrong once more; null below the limit. */
export type Refusal = () => Problem | null;

const BODY_BYTES_MAX = 56 * 1024;
/** Thrown through the transaction of an answer that failed, whose text is written already. */
const FAILED = Symbol('failed');

/** Runs a request in a transaction, and sends the response after its end. @throws Problem of `refusal` */
export async function inTransaction(
  ctx: Context,
  { request, response, refusal }: { request: IncomingMessage; response: ServerResponse; refusal: Refusal },
  answer: (inner: Context) => Promise<void>,
): Promise<void> {
  const buffered = bufferResponse(response);
  try {
    await ctx.transact(async (inner) => {
      await answer(inner);
      if (response.statusCode >= 500) throw FAILED;
    });
  } catch (error) {
    if (error !== FAILED) {
      buffered.drop();
      throw error;
    }
  }
  const refused = isFailedAttempt(request) && refusal();
  if (!refused) return buffered.send();
  buffered.drop();
  throw refused;
}

/** Buffers a response until it may be sent. */
function bufferResponse(response: ServerResponse): { send(): void; drop(): void } {
  const { end } = response;
  let last: Parameters<typeof end> | null = null;
  response.end = ((...parts: Parameters<typeof end>) => {
    last = parts;
    return response;
  }) as typeof end;
  const drop = (): void => {
    response.end = end;
  };
  return {
    drop,
    send() {
      drop();
      if (last) response.end(...last);
    },
  };
}

/** Reads the body before the turn of the request comes, so that a slow client does not block others. */
export async function bufferBody(request: IncomingMessage): Promise<void> {
  const body = await readRawBody(request, BODY_BYTES_MAX);
  Object.defineProperty(request, 'readable', { value: true });
  request.iterator = async function* () {
    yield body;
  } as unknown as IncomingMessage['iterator'];
}
