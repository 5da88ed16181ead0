// `Prefer: wait=N` (RFC 7240 section 4.3): the answer of an operation that starts work is held back until the resource
// has settled, or N seconds are over. It is then what a GET would answer at that moment.
import { setTimeout as sleep } from 'node:timers/promises';
import { getNullableType } from 'graphql';
import { limits } from '../core/limits';
import type { Operation } from '../contract/operations';
import type { RestResponse } from './idempotency';

/** States that end by themselves, by the GraphQL type that has them. */
export type Transitional = ReadonlyMap<string, readonly string[]>;

/** Reads a resource once more: body and ETag as its GET would answer. Null where it is gone. */
export type Reread = (
  getter: Operation,
  params: Record<string, string>,
) => Promise<{ body: string; etag: string | null } | null>;

export interface Waiting {
  seconds: number;
  /** The operation that reads what `operation` answers with. */
  getter: Operation;
  params: Record<string, string>;
  transitional: readonly string[];
  /** Aborted when the client is gone or the process stops. */
  signal: AbortSignal;
}

const FIRST_POLL_MS = 100;
const LAST_POLL_MS = 500;

/** Seconds that the client prefers to wait, at most 60; null without a well-formed preference. */
export function preferredWait(header: string | string[] | undefined): number | null {
  const found = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:[,;]|$)/i.exec([header ?? ''].flat().join(','));
  return found ? Math.min(Number(found[1]), limits.preferWaitSecondsMax) : null;
}

/** Prepares, for each mutation whose answer has transitional states, how to read that resource again. */
export function rereaders(
  operations: Operation[],
  transitional: Transitional,
): Map<string, { getter: Operation; ownId: boolean }> {
  const getters = operations.filter((operation) => operation.method === 'GET' && !operation.field.list);
  const found = new Map<string, { getter: Operation; ownId: boolean }>();
  for (const operation of operations) {
    const type = typeOf(operation);
    if (operation.method === 'GET' || !transitional.get(type)?.length) continue;
    const of = getters.filter((getter) => typeOf(getter) === type);
    const same = of.find(
      ({ path }) => path === operation.path || path === operation.path.slice(0, operation.path.lastIndexOf('/')),
    );
    const created = of.find(({ path }) => path.endsWith('}'));
    if (same) found.set(operation.id, { getter: same, ownId: false });
    else if (created && operation.statuses.includes(201)) found.set(operation.id, { getter: created, ownId: true });
  }
  return found;
}

/** Path parameters of the reader: those of the request, and the id of a record that was made. */
export function paramsFor(
  { getter, ownId }: { getter: Operation; ownId: boolean },
  params: Record<string, string>,
  body: string,
): Record<string, string> {
  if (!ownId) return params;
  const last = getter.params[getter.params.length - 1]?.name as string;
  return { ...params, [last]: (JSON.parse(body) as { id: string }).id };
}

/** The answer once the resource has settled, or the time is over. */
export async function waitUntilSettled(answer: RestResponse, waiting: Waiting, reread: Reread): Promise<RestResponse> {
  const end = performance.now() + waiting.seconds * 1000;
  let latest = answer;
  let pauseMs = FIRST_POLL_MS;
  while (isTransitional(latest.body, waiting.transitional) && performance.now() < end && !waiting.signal.aborted) {
    await sleep(Math.min(pauseMs, end - performance.now()), undefined, { signal: waiting.signal }).catch(() => {});
    pauseMs = Math.min(pauseMs * 1.5, LAST_POLL_MS);
    const found = await reread(waiting.getter, waiting.params);
    if (!found) break;
    latest = { ...answer, body: found.body, headers: { ...answer.headers, ...(found.etag && { ETag: found.etag }) } };
  }
  return { ...latest, headers: { ...latest.headers, 'Preference-Applied': `wait=${waiting.seconds}` } };
}

function isTransitional(body: string, transitional: readonly string[]): boolean {
  const { status } = JSON.parse(body) as { status?: string };
  return status !== undefined && transitional.includes(status);
}

export const typeOf = (operation: Operation): string => String(getNullableType(operation.field.definition.type));
