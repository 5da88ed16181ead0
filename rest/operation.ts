// Runs an admitted REST operation, in its transaction, once per Idempotency-Key, and builds the response from its
// result.
import { execute, type RootOperation } from '../contract/admission';
import type { Operation } from '../contract/operations';
import { readerParams, type Reader } from '../contract/readers';
import type { Context } from '../core/context';
import { bodyTag } from './conditional';
import type { Exchange } from './exchange';
import type { Handler } from './facade';
import { findReplay, idempotencyKey, runOnce, scopeOf, type RestResponse } from './idempotency';
import type { Match } from './router';

export async function runOperation(
  exchange: Exchange,
  called: RootOperation,
  { operation, params }: Match,
  path: string,
  args: Record<string, unknown>,
): Promise<RestResponse> {
  const { parts, readers, request, ctx } = exchange;
  const handler = parts.handlers.get(operation.id) as Handler;
  const { method, field } = operation;
  if (method !== 'GET' && method !== 'POST') ctx.if_match = request.headers['if-match'];
  const key = method === 'POST' ? idempotencyKey(request.headers['idempotency-key']) : null;
  const sent = field.body ? args[field.body.argument] : {};
  const repeatable = key === null || ctx.dry_run ? null : { key, operation, path, body: sent };
  ctx.idempotency_scope = repeatable ? scopeOf(ctx, repeatable) : undefined;
  const run = async (inner: Context): Promise<RestResponse> => {
    const respond = async (): Promise<RestResponse> => {
      const body = await handler(inner, args);
      const location = locationOf(operation, readers.get(operation.id), params, body);
      return responseOf(inner, operation, body, location ? { Location: parts.config.baseUrl + location } : {});
    };
    return repeatable ? runOnce(inner, parts.answers, repeatable, respond) : respond();
  };
  return execute(ctx, called, args, run, async () => repeatable && findReplay(ctx, parts.answers, repeatable));
}

/** The path of a created record, null where none was created or nothing reads it. */
function locationOf(
  { statuses }: Operation,
  reader: Reader | undefined,
  params: Record<string, string>,
  body: string,
): string | null {
  if (!reader || !statuses.includes(201)) return null;
  const values = readerParams(reader, params, body);
  return reader.operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ''));
}

function responseOf(
  { reply }: Context,
  operation: Operation,
  body: string,
  headers: Record<string, string>,
): RestResponse {
  const status = reply.status ?? operation.status;
  if (!operation.statuses.includes(status)) throw new Error(`${operation.id} may not answer ${status}`);
  if (status === 204) return { status, body: '', headers };
  const etag = reply.etag ?? bodyTag(operation, body);
  return { status, body, headers: etag ? { ...headers, ETag: etag } : headers };
}
