// The REST face, in the order of decision 6. The page to read first.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Config } from '../core/config';
import type { Context, Identity, ProjectAccess } from '../core/context';
import { problem, Problem, validationFailed, type ErrorCode } from '../core/errors';
import type { FieldValidator } from '../contract/field_validator';
import { refusalOf } from '../contract/guard';
import type { LiveReader } from '../contract/live';
import type { Operation, OperationTable } from '../contract/operations';
import { acceptable, bodyTag, notModified } from './conditional';
import type { Handler } from './facade';
import { idempotencyKey, runOnce, type RestResponse, type IdempotencyStore } from './idempotency';
import { sendEventStream, acceptsEventStream } from './event_stream';
import { locations, type Locate } from './location';
import { asProblem, writeProblem } from './problem';
import { abortOnDisconnect } from './disconnect';
import { parseBody, parseQuery, parseTarget } from './request';
import { buildRouter, type Match, type Router } from './router';
import { paramsFor, preferredWait, rereaders, waitUntilSettled, typeOf, type Transitional } from './prefer_wait';
import { sendText } from './send_text';

export interface RestParts {
  config: Config;
  table: OperationTable;
  validators: Map<string, FieldValidator>;
  handlers: Map<string, Handler>;
  /** Questions to the outside world that an operation asks before its transaction. */
  prepare: Map<string, (args: Record<string, unknown>, ctx: Context) => Promise<unknown>>;
  /** Bounded waits, after the commit, for what an operation has asked for. */
  confirm: Map<string, (args: Record<string, unknown>, ctx: Context) => Promise<void>>;
  answers: IdempotencyStore;
  /** States that end by themselves, by GraphQL type. */
  transitional: Transitional;
  /** Readers of the lists that can be followed. */
  live: Map<string, LiveReader>;
  /** A fresh context; nobody is known yet. */
  context(request: IncomingMessage, requestId: string): Context;
  /** Who an Authorization header says it is, or token_missing, token_invalid, token_expired, rate_limited (failed attempts per address). */
  authenticate(header: string | undefined, address: string): Identity | Problem | Promise<Identity | Problem>;
  /** Documents matched before the operation table: OpenAPI, console. */
  document(
    path: string,
    request: IncomingMessage,
  ): { type: string; body: string | Buffer; headers?: Record<string, string> } | null;
  /** Called once per request for the log and the metrics. */
  done(entry: RestEntry): void;
}

export interface RestEntry {
  request: IncomingMessage;
  /** performance.now() when it came. */
  started: number;
  request_id: string;
  operation: string | null;
  status: number;
  identity: Identity | null;
  project: ProjectAccess | null;
  code: ErrorCode | null;
  /** What was thrown, where it was not a problem: for the log only. */
  cause: unknown;
}

export type RestHandler = (request: IncomingMessage, response: ServerResponse, requestId: string) => Promise<void>;

interface Exchange {
  parts: RestParts;
  locate: Locate;
  rereaders: ReturnType<typeof rereaders>;
  request: IncomingMessage;
  response: ServerResponse;
  started: number;
  ctx: Context;
  operation: Operation | null;
}

/** The handler of every path under /v2. It answers each request exactly once, with its id, and never throws. */
export function restHandler(parts: RestParts): RestHandler {
  const router = buildRouter(parts.table.operations);
  const locate = locations(parts.table.operations, parts.config.baseUrl);
  const rereadersById = rereaders(parts.table.operations, parts.transitional);
  return (request, response, requestId) => {
    return handle(
      {
        parts,
        locate,
        rereaders: rereadersById,
        request,
        response,
        started: performance.now(),
        ctx: parts.context(request, requestId),
        operation: null,
      },
      router,
    );
  };
}

/** What refuses the caller is answered, not thrown: through as many promises that would cost more than the checks themselves. */
async function handle(exchange: Exchange, router: Router): Promise<void> {
  const { request, ctx } = exchange;
  try {
    const { path, search } = parseTarget(request.url ?? '/');
    if (sendDocument(exchange, path) || sendOptions(exchange, router, path)) return finish(exchange, null);
    const match = router.match(request.method ?? 'GET', path);
    if (match instanceof Problem) return refuse(exchange, match);
    exchange.operation = match.operation;
    // Without a promise where there is none: a stranger is refused in the very turn in which the request came.
    const identified = identify(exchange, match.operation);
    const refusal =
      (identified instanceof Promise ? await identified : identified) ??
      (await refusalOf(ctx, match.operation.field, projectOf(match)));
    if (refusal) return refuse(exchange, refusal);
    await perform(exchange, match, path, search);
    finish(exchange, null);
  } catch (error) {
    refuse(exchange, error);
  }
}

function identify({ parts, request, ctx }: Exchange, operation: Operation): Problem | null | Promise<Problem | null> {
  if (operation.field.scope === 'none') return null;
  const known = (found: Identity | Problem): Problem | null => {
    if (found instanceof Problem) return found;
    ctx.identity = found;
    return null;
  };
  const found = parts.authenticate(request.headers.authorization, ctx.address);
  return found instanceof Promise ? found.then(known) : known(found);
}

/** The project that the path names, where the operation takes it from there. */
function projectOf({ operation, params }: Match): string | undefined {
  const { projectArgument } = operation.field;
  const named = operation.params.find(({ argument }) => argument === projectArgument);
  return named && params[named.name];
}

async function perform(exchange: Exchange, match: Match, path: string, search: string): Promise<void> {
  const { operation } = match;
  const args = await readArguments(exchange, match, search);
  if (operation.field.live && acceptsEventStream(exchange.request.headers.accept))
    return follow(exchange, operation, args);
  send(exchange, operation, await patiently(exchange, match, await run(exchange, match, path, args)));
}

/** First the syntax, then the fields. */
async function readArguments(
  { parts, request }: Exchange,
  match: Match,
  search: string,
): Promise<Record<string, unknown>> {
  const { operation, params } = match;
  const { field } = operation;
  const inPath: Record<string, unknown> = {};
  for (const { name, argument } of operation.params) inPath[argument] = params[name];
  if (!field.live || !acceptsEventStream(request.headers.accept)) acceptable(request.headers.accept);
  const query = parseQuery(search, operation);
  const body = operation.method === 'GET' || operation.method === 'DELETE' ? {} : await parseBody(request);
  if (!field.body) refuseFields(body);
  const raw = field.body ? { ...query, ...inPath, [field.body.argument]: body } : { ...query, ...inPath };
  return (parts.validators.get(field.name) as FieldValidator)(raw);
}

function refuseFields(body: Record<string, unknown>): void {
  const names = Object.keys(body);
  if (!names.length) return;
  throw validationFailed(
    names.map((field) => ({ field, code: 'unknown_field', detail: 'is not a field of this body' })),
  );
}

async function run(
  exchange: Exchange,
  match: Match,
  path: string,
  args: Record<string, unknown>,
): Promise<RestResponse> {
  const { parts, request, ctx, locate } = exchange;
  const { operation } = match;
  const handler = parts.handlers.get(operation.id) as Handler;
  if (operation.field.kind === 'query') return answerOf(ctx, operation, await handler(ctx, args), {});
  ctx.if_match = operation.method === 'POST' ? undefined : request.headers['if-match'];
  ctx.probed = await parts.prepare.get(operation.field.name)?.(args, ctx);
  const key = operation.method === 'POST' ? idempotencyKey(request.headers['idempotency-key']) : null;
  const answer = await ctx.transact(async (inner) => {
    const effect = async (): Promise<RestResponse> => {
      const body = await handler(inner, args);
      return answerOf(inner, operation, body, locate(operation, match.params, body));
    };
    if (!key) return effect();
    const sent = operation.field.body ? args[operation.field.body.argument] : {};
    return runOnce(inner, parts.answers, { key, operation, path, body: sent }, effect);
  });
  await parts.confirm.get(operation.field.name)?.(args, ctx);
  return answer;
}

/** Where the client prefers to wait, the answer as it is once the resource has settled. */
async function patiently(
  exchange: Exchange,
  { operation, params }: Match,
  answer: RestResponse,
): Promise<RestResponse> {
  const { parts, request, response, ctx } = exchange;
  const seconds = preferredWait(request.headers.prefer);
  const found = exchange.rereaders.get(operation.id);
  if (seconds === null || !found || answer.status === 204) return answer;
  const transitional = parts.transitional.get(typeOf(operation)) ?? [];
  ctx.signal = abortOnDisconnect(response, ctx.signal);
  const waiting = {
    seconds,
    getter: found.getter,
    params: paramsFor(found, params, answer.body),
    transitional,
    signal: ctx.signal,
  };
  return waitUntilSettled(answer, waiting, (getter, inPath) => reread(parts, ctx, getter, inPath));
}

async function reread(
  parts: RestParts,
  ctx: Context,
  getter: Operation,
  params: Record<string, string>,
): Promise<{ body: string; etag: string | null } | null> {
  const fresh: Context = { ...ctx, loaders: new Map(), reply: { status: null, etag: null, headers: {} } };
  const args = Object.fromEntries(getter.params.map(({ name, argument }) => [argument, params[name]]));
  try {
    return { body: await (parts.handlers.get(getter.id) as Handler)(fresh, args), etag: fresh.reply.etag };
  } catch (error) {
    if (asProblem(error).code === 'not_found') return null;
    throw error;
  }
}

/** Streams events in place of a page. */
function follow(exchange: Exchange, operation: Operation, args: Record<string, unknown>): Promise<void> {
  const { parts, request, response, ctx } = exchange;
  const after = request.headers['last-event-id'];
  ctx.signal = abortOnDisconnect(response, ctx.signal);
  const stillAllowed = async (): Promise<void> => {
    const refusal = await identify(exchange, operation);
    if (refusal) throw refusal;
    if (ctx.project && !(await ctx.access(ctx.project.id))) throw problem('not_found');
  };
  return sendEventStream(response, {
    ...{ ctx, args, reader: parts.live.get(operation.field.name) as LiveReader, requireAccess: stillAllowed },
    after: typeof after === 'string' && after !== '' ? after : null,
    signal: ctx.signal,
  });
}

function answerOf(ctx: Context, operation: Operation, body: string, headers: Record<string, string>): RestResponse {
  const status = ctx.reply.status ?? operation.status;
  if (!operation.statuses.includes(status)) throw new Error(`${operation.id} may not answer ${status}`);
  const etag = ctx.reply.etag ?? bodyTag(operation, body);
  return {
    status,
    body: status === 204 ? '' : body,
    headers: etag && status !== 204 ? { ...headers, ETag: etag } : headers,
  };
}

function send({ request, response, ctx }: Exchange, operation: Operation, answer: RestResponse): void {
  const headers: Record<string, string | number> = {
    'X-Request-Id': ctx.request_id,
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

function sendDocument({ parts, request, response, ctx }: Exchange, path: string): boolean {
  const found = parts.document(path, request);
  if (!found) return false;
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.writeHead(405, { 'X-Request-Id': ctx.request_id, Allow: 'GET, HEAD', 'Content-Length': 0 }).end();
    return true;
  }
  response.writeHead(200, {
    'X-Request-Id': ctx.request_id,
    'Content-Type': found.type,
    'Content-Length': Buffer.byteLength(found.body),
    'Cache-Control': 'no-cache',
    ...found.headers,
  });
  response.end(request.method === 'HEAD' ? undefined : found.body);
  return true;
}

/** Not for a path that is none, which is refused as with any other method. */
function sendOptions({ request, response, ctx }: Exchange, router: Router, path: string): boolean {
  if (request.method !== 'OPTIONS') return false;
  const allowed = router.allowed(path);
  if (!allowed.length) return false;
  response.writeHead(204, { 'X-Request-Id': ctx.request_id, Allow: allowed.join(', ') }).end();
  return true;
}

function refuse(exchange: Exchange, error: unknown): void {
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

function finish(
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
