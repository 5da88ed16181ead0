// `Prefer: wait=N` (RFC 7240 section 4.3): the answer of an operation that starts work is held back until the resource
// has settled, or N seconds are over. It then equals the response of a GET at that moment. The work has begun by then:
// if the database does not respond, the last state that was read is returned when the time is over.
import { setTimeout as sleep } from 'node:timers/promises';
import { readmission, type RootOperation } from '../contract/admission';
import type { Operation } from '../contract/operations';
import { answerTypeOf, readerParams } from '../contract/readers';
import type { Context } from '../core/context';
import { Problem } from '../core/errors';
import { limits } from '../core/limits';
import { abortOnDisconnect } from './disconnect';
import type { Exchange } from './exchange';
import type { Handler } from './facade';
import type { RestResponse } from './idempotency';
import { asProblem } from './problem';
import type { Match } from './router';

/** States that end by themselves, by the GraphQL type that has them. */
export type Transitional = ReadonlyMap<string, readonly string[]>;

const FIRST_POLL_MS = 100;
const LAST_POLL_MS = 500;

/** If the client prefers to wait, the response once the resource has settled or the time is over. */
export async function waitIfPreferred(
  exchange: Exchange,
  { operation, params }: Match,
  answer: RestResponse,
): Promise<RestResponse> {
  const { parts, readers, request, response, ctx } = exchange;
  const seconds = preferredWait(request.headers.prefer);
  const reader = readers.get(operation.id);
  if (seconds === null || !reader || ctx.dry_run || answer.status === 204 || !canWait(operation, parts.transitional))
    return answer;
  const transitional = parts.transitional.get(answerTypeOf(operation)) ?? [];
  ctx.signal = abortOnDisconnect(response, ctx.signal);
  ctx.readmit = readmission(ctx, parts.operations.get(operation.field.name) as RootOperation);
  const inPath = readerParams(reader, params, answer.body);
  const handler = parts.handlers.get(reader.operation.id) as Handler;
  const settled = await waitUntilSettled(answer, { seconds, transitional, signal: ctx.signal }, () =>
    readAgain(ctx, handler, reader.operation, inPath),
  );
  return { ...settled, headers: { ...settled.headers, 'Preference-Applied': `wait=${seconds}` } };
}

/** Whether an operation starts work that a client can wait for. */
export function canWait(operation: Operation, transitional: Transitional): boolean {
  return operation.method !== 'GET' && Boolean(transitional.get(answerTypeOf(operation))?.length);
}

/** Seconds that the client prefers to wait, at most 60; null without a well-formed preference. */
function preferredWait(header: string | string[] | undefined): number | null {
  const found = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:[,;]|$)/i.exec([header ?? ''].flat().join(','));
  return found ? Math.min(Number(found[1]), limits.preferWaitSecondsMax) : null;
}

interface Wait {
  seconds: number;
  transitional: readonly string[];
  /** Aborted when the client is gone or the process stops. */
  signal: AbortSignal;
}

/** null: gone, or nothing that the caller may see any more. */
type Reading = { body: string; etag: string | null } | 'failed' | null;

async function waitUntilSettled(
  answer: RestResponse,
  { seconds, transitional, signal }: Wait,
  read: () => Promise<Reading>,
): Promise<RestResponse> {
  const end = performance.now() + seconds * 1000;
  const done = new AbortController();
  const timeIsOver = sleep(seconds * 1000, 'failed' as const, { signal: done.signal }).catch(() => 'failed' as const);
  let latest = answer;
  let pauseMs = FIRST_POLL_MS;
  while (isTransitional(latest.body, transitional) && performance.now() < end && !signal.aborted) {
    await sleep(Math.min(pauseMs, end - performance.now()), undefined, { signal }).catch(() => {});
    pauseMs = Math.min(pauseMs * 1.5, LAST_POLL_MS);
    const found = await Promise.race([read(), timeIsOver]);
    if (!found) break;
    if (found === 'failed') continue;
    latest = { ...answer, body: found.body, headers: { ...answer.headers, ...(found.etag && { ETag: found.etag }) } };
  }
  done.abort();
  return latest;
}

function isTransitional(body: string, transitional: readonly string[]): boolean {
  const { status } = JSON.parse(body) as { status?: string };
  return status !== undefined && transitional.includes(status);
}

/** Body and ETag as the GET would answer. */
async function readAgain(
  ctx: Context,
  handler: Handler,
  { params }: Operation,
  inPath: Record<string, string>,
): Promise<Reading> {
  const fresh: Context = { ...ctx, loaders: new Map(), reply: { status: null, etag: null, headers: {} } };
  const args = Object.fromEntries(params.map(({ name, argument }) => [argument, inPath[name]]));
  try {
    const body = await handler(fresh, args);
    // After it: what was read may have been written after the right ended.
    const admitted = await isStillAdmitted(ctx);
    if (admitted !== true) return admitted === 'unknown' ? 'failed' : null;
    return { body, etag: fresh.reply.etag };
  } catch (error) {
    return asProblem(error).code === 'not_found' ? null : 'failed';
  }
}

// The operation has succeeded, so a caller whose access ends meanwhile gets the last response it was entitled to.
async function isStillAdmitted(ctx: Context): Promise<boolean | 'unknown'> {
  try {
    await ctx.readmit?.();
    return true;
  } catch (error) {
    return error instanceof Problem && error.status < 500 ? false : 'unknown';
  }
}
