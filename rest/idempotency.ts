// Idempotency-Key (draft-ietf-httpapi-idempotency-key-header): a POST that is sent again is answered again, not done
// again.
import { createHash } from 'node:crypto';
import { canonicalJson } from '../core/canonical_json';
import type { Context } from '../core/context';
import { problem } from '../core/errors';
import type { Operation } from '../contract/operations';

/** The stored response, kept encrypted for a day. */
export interface RestResponse {
  status: number;
  body: string;
  headers: Record<string, string>;
}

/** Where answers are kept; every call is inside the transaction of the effect. */
export interface IdempotencyStore {
  /** false while a twin holds the scope. */
  lock(ctx: Context, scope: string): Promise<boolean>;
  find(ctx: Context, scope: string): Promise<{ fingerprint: string; answer: RestResponse } | null>;
  save(ctx: Context, scope: string, fingerprint: string, answer: RestResponse): Promise<void>;
}

/** The checked key of a request, null where none was sent. @throws malformed_request */
export function idempotencyKey(header: string | string[] | undefined): string | null {
  if (header === undefined) return null;
  if (typeof header !== 'string' || !/^[\x21-\x7e][\x20-\x7e]{0,254}$/.test(header)) {
    throw problem('malformed_request', 'Idempotency-Key must be 1 to 255 printable ASCII characters.');
  }
  return header;
}

/** A POST with an Idempotency-Key. */
interface RepeatableRequest {
  key: string;
  operation: Operation;
  path: string;
  body: unknown;
}

/**
 * Runs the effect once per key, project, operation and path; a repetition gets the stored answer.
 * @throws idempotency_in_progress while the first is under way, idempotency_key_reused with another body
 */
export async function runOnce(
  ctx: Context,
  store: IdempotencyStore,
  request: RepeatableRequest,
  effect: () => Promise<RestResponse>,
): Promise<RestResponse> {
  const { scope, fingerprint } = digestsOf(ctx, request);
  const isLocked = await store.lock(ctx, scope);
  // Also without the lock: repetitions of a finished request may come together.
  const known = await store.find(ctx, scope);
  if (!known && !isLocked) throw problem('idempotency_in_progress', undefined, {}, { 'Retry-After': '1' });
  if (!known) {
    const answer = await effect();
    await store.save(ctx, scope, fingerprint, answer);
    return answer;
  }
  return replayed(known, fingerprint);
}

/** The stored answer of a request that is finished, null for another one. @throws idempotency_key_reused */
export async function findReplay(
  ctx: Context,
  store: IdempotencyStore,
  request: RepeatableRequest,
): Promise<RestResponse | null> {
  const { scope, fingerprint } = digestsOf(ctx, request);
  const known = await store.find(ctx, scope);
  return known && replayed(known, fingerprint);
}

function replayed(known: { fingerprint: string; answer: RestResponse }, fingerprint: string): RestResponse {
  if (known.fingerprint !== fingerprint) throw problem('idempotency_key_reused');
  return { ...known.answer, headers: { ...known.answer.headers, 'Idempotent-Replayed': 'true' } };
}

/** Scope of a key. Includes the project, which a header selects on short paths: two projects may use the same key. */
export function scopeOf(ctx: Context, { key, operation, path }: RepeatableRequest): string {
  return digest([ctx.identity?.id, ctx.project?.id, operation.id, path, key]);
}

function digestsOf(ctx: Context, request: RepeatableRequest): { scope: string; fingerprint: string } {
  return { scope: scopeOf(ctx, request), fingerprint: digest([request.path, canonicalJson(request.body)]) };
}

function digest(parts: unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}
