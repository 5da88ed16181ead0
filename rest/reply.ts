// How a REST exchange ends: with a response, a document, the methods of a path, or a problem.
import type { Operation } from '../contract/operations';
import type { ErrorCode } from '../core/errors';
import { notModified } from './conditional';
import type { Exchange } from './exchange';
import type { RestResponse } from './idempotency';
import { asProblem, writeProblem } from './problem';
import type { Router } from './router';
import { NOSNIFF, sendText } from './send_text';

/** Sends what an operation answered, or 304 where the client has it already; a 304 costs no rate-limit point. */
export function sendResponse({ request, response, ctx }: Exchange, operation: Operation, answer: RestResponse): void {
  const headers: Record<string, string | string[] | number> = {
    'X-Request-Id': ctx.request_id,
    ...NOSNIFF,
    ...answer.headers,
    ...ctx.reply.headers,
  };
  if (operation.method === 'GET' && notModified(request.headers['if-none-match'], answer.headers.ETag)) {
    if (ctx.identity) ctx.limiter.give(ctx.identity.account_id, operation.field.budget, 1);
    response.writeHead(304, headers).end();
    return;
  }
  if (answer.status === 204) {
    response.writeHead(204, headers).end();
    return;
  }
  headers['Content-Type'] = 'application/json';
  headers['Cache-Control'] = 'private, no-cache';
  sendText(response, answer.status, headers, answer.body, request.method === 'HEAD');
}

/** Sends the OpenAPI document or a page of the console. @returns false if the path is neither */
export function sendDocument({ parts, request, response, ctx }: Exchange, path: string): boolean {
  const found = parts.document(path, request);
  if (!found) return false;
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    const headers = { 'X-Request-Id': ctx.request_id, ...NOSNIFF, Allow: 'GET, HEAD', 'Content-Length': 0 };
    response.writeHead(405, headers).end();
    return true;
  }
  response.writeHead(200, {
    'X-Request-Id': ctx.request_id,
    ...NOSNIFF,
    'Content-Type': found.type,
    'Content-Length': Buffer.byteLength(found.body),
    'Cache-Control': 'no-cache',
    ...found.headers,
  });
  response.end(request.method === 'HEAD' ? undefined : found.body);
  return true;
}

/** Answers OPTIONS, but not of a path without operations, which is refused as with any other method. */
export function sendOptions({ request, response, ctx }: Exchange, router: Router, path: string): boolean {
  if (request.method !== 'OPTIONS') return false;
  const allowed = router.allowed(path);
  if (!allowed.length) return false;
  response.writeHead(204, { 'X-Request-Id': ctx.request_id, ...NOSNIFF, Allow: allowed.join(', ') }).end();
  return true;
}

/** Sends a thrown error as a problem document. */
export function sendProblem(exchange: Exchange, error: unknown): void {
  const { parts, request, response, ctx } = exchange;
  const failure = asProblem(error);
  if (!response.headersSent) {
    const instance = (request.url ?? '/').split('?')[0] as string;
    writeProblem(response, failure, {
      base_url: parts.config.baseUrl,
      request_id: ctx.request_id,
      instance,
      head: request.method === 'HEAD',
      headers: ctx.reply.headers,
    });
  }
  finish(exchange, failure.code, failure === error ? null : error);
}

/** Reports the finished request to the log and the metrics. */
export function finish(
  { parts, request, started, response, ctx, operation }: Exchange,
  code: ErrorCode | null,
  cause: unknown = null,
): void {
  parts.done({
    request,
    started,
    request_id: ctx.request_id,
    operation: operation?.id ?? null,
    status: response.statusCode,
    identity: ctx.identity,
    project: ctx.project,
    code,
    cause,
  });
}
