// The REST face: the whole way of a request from top to bottom, in the order of docs/decisions/rules.md §6. The page to
// read first.
import { admit, readmission } from '../contract/admission';
import type { RootOperation } from '../contract/admission';
import { listIdentity, type LiveReader } from '../contract/live';
import { readersOf } from '../contract/readers';
import { readArguments } from './arguments';
import { prefersEvents } from './conditional';
import { abortOnDisconnect } from './disconnect';
import { sendEventStream } from './event_stream';
import type { Exchange, RestHandler, RestParts } from './exchange';
import { runOperation } from './operation';
import { waitIfPreferred } from './prefer_wait';
import { finish, sendDocument, sendOptions, sendProblem, sendResponse } from './reply';
import { parseTarget } from './request';
import { buildRouter, type Match, type Router } from './router';

/** The handler of every path under /v2. It answers each request exactly once, with its id, and never throws. */
export function restHandler(parts: RestParts): RestHandler {
  const router = buildRouter(parts.table.operations);
  const readers = readersOf(parts.table.operations);
  return (request, response, requestId) => {
    const started = performance.now();
    const ctx = parts.context(request, requestId);
    return handle({ parts, readers, request, response, started, ctx, operation: null }, router);
  };
}

async function handle(exchange: Exchange, router: Router): Promise<void> {
  const { parts, request, ctx } = exchange;
  try {
    const { path, search } = parseTarget(request.url ?? '/'); // 400 malformed_request
    if (sendDocument(exchange, path) || sendOptions(exchange, router, path)) return finish(exchange, null);
    const match = router.match(request.method ?? 'GET', path); // 404 route_not_found, 405
    exchange.operation = match.operation;
    await identify(exchange, match); // 401
    const called = parts.operations.get(match.operation.field.name) as RootOperation;
    const args = await admit(ctx, called, {
      projectId: projectIdOf(match), // 403 account, 429, 403 scope, 404 project, 403 role
      readArguments: () => readArguments(request, match, search), // 400, 406, 413, 415, then 422 fields
    });
    if (followsList(exchange)) await follow(exchange, called, args);
    else {
      const response = await runOperation(exchange, called, match, path, args); // replay, 404, 412, 409, 422
      sendResponse(exchange, match.operation, await waitIfPreferred(exchange, match, response)); // 304
    }
    finish(exchange, null);
  } catch (error) {
    sendProblem(exchange, error);
  }
}

async function identify({ parts, request, ctx }: Exchange, { operation }: Match): Promise<void> {
  if (operation.field.scope !== 'none')
    ctx.identity = await parts.authenticate(request.headers.authorization, ctx.address);
}

/** The project that the path names, where the operation takes it from there. */
function projectIdOf({ operation, params }: Match): string | undefined {
  const { projectArgument } = operation.field;
  const named = operation.params.find(({ argument }) => argument === projectArgument);
  return named && params[named.name];
}

function followsList({ request, operation }: Exchange): boolean {
  return Boolean(operation?.field.live && prefersEvents(request.headers.accept));
}

/** Streams events instead of a page. */
function follow(exchange: Exchange, called: RootOperation, args: Record<string, unknown>): Promise<void> {
  const { parts, request, response, ctx } = exchange;
  const after = request.headers['last-event-id'];
  ctx.signal = abortOnDisconnect(response, ctx.signal);
  ctx.readmit = readmission(ctx, called);
  return sendEventStream(response, {
    ...{ ctx, args, list: listIdentity(called.field, args) },
    reader: parts.live.get(called.field.name) as LiveReader,
    after: typeof after === 'string' && after !== '' ? after : null,
    signal: ctx.signal,
  });
}
