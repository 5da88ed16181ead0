// The GraphQL face: Apollo Server with the same keys, rules and errors as REST, and sessions for the dashboard. Express has the
// explorer and the streams.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import {
  ApolloServer,
  type ApolloServerPlugin,
  type GraphQLRequest,
  type GraphQLRequestContextWillSendResponse,
} from '@apollo/server';
import { ApolloServerPluginCacheControlDisabled } from '@apollo/server/plugin/disabled';
import express, { type ErrorRequestHandler, type RequestHandler, type Response, type Router } from 'express';
import { getIntrospectionQuery, GraphQLError, type GraphQLFormattedError, type GraphQLSchema } from 'graphql';
import type { Context, Identity, ProjectAccess, Reply } from '../core/context';
import { errors, problem, Problem, type ErrorCode } from '../core/errors';
import { limits } from '../core/limits';
import { readSessionCookie } from '../core/session_cookie';
import type { RestEntry } from '../rest/exchange';
import { acceptable } from '../rest/conditional';
import { acceptsEventStream } from '../rest/event_stream';
import { asProblem } from '../rest/problem';
import { parseBody } from '../rest/request';
import { sendText } from '../rest/send_text';
import { authenticate } from '../platform/authenticate';
import { compiling } from './compiled_queries';
import { subscriptions } from './stream';
import { requestContext } from '../platform/context';
import type { Platform } from '../platform/platform';
import { queryLimits, type QueryLimits } from './query_limits';

/** What the handlers of one request share. */
interface Locals {
  ctx: Context;
}

/** What became of a request, for the log. Apollo works on a copy of the context; the reply in it is the same. */
const outcomes = new WeakMap<Reply, { code: ErrorCode; project: ProjectAccess | null }>();

type Page = () => { type: string; body: string | Buffer; headers?: Record<string, string> };

export interface GraphqlFace {
  router: Router;
  /**
   * Takes what is posted to /graphql on its way to Express: who calls, whether the query is one that we run, and its answer.
   * Behind Express a refusal would cost three times as much.
   */
  gate(express: RequestListener): RequestListener;
  stop(): Promise<void>;
}

/**
 * Routes of /graphql: GET is the explorer, POST runs one operation.
 * @param done called once for each POST, for the log and the metrics
 */
export async function graphqlFace(
  platform: Platform,
  schema: GraphQLSchema,
  explorer: Page,
  done: (entry: RestEntry) => void = () => {},
): Promise<GraphqlFace> {
  const apollo = new ApolloServer<Context>({
    gateway: compiling(schema),
    introspection: true,
    persistedQueries: false,
    includeStacktraceInErrorResponses: false,
    stopOnTerminationSignals: false,
    hideSchemaDetailsFromClientErrors: false,
    formatError: (_, error) => formatError(error),
    // Apollo's plugin visits each field of each row, a quarter of a list's cost, for a header that is always the same.
    plugins: [ApolloServerPluginCacheControlDisabled(), responsePlugin(platform)],
    logger: platform.log.child({}, { level: 'error' }),
  });
  await apollo.start();
  const walk = queryLimits(
    schema,
    getIntrospectionQuery({
      specifiedByUrl: true,
      directiveIsRepeatable: true,
      schemaDescription: true,
      inputValueDeprecation: true,
      oneOf: true,
    }),
  );
  const router = express.Router();
  router.get('/', serveExplorer(explorer));
  router.post(
    '/',
    requireAdmitted,
    subscriptions(schema, (error) => formatAndLogError(platform, error)),
  );
  router.all('/', (_, response) =>
    refuse(response, problem('method_not_allowed', undefined, {}, { Allow: 'GET, HEAD, POST' })),
  );
  router.use(refuseErrors(platform));
  return { router, gate: (behind) => gate(platform, { apollo, walk, done }, behind), stop: () => apollo.stop() };
}

/** Express keeps what stands there before it. */
const localsOf = (response: ServerResponse): Partial<Locals> => ((response as Response).locals ??= {});

/** The explorer is for browsers, whose Accept has HTML. A query in the URL is never run. */
function serveExplorer(page: Page): RequestHandler {
  return (request, response) => {
    if (!/\btext\/html\b/i.test(request.headers.accept ?? ''))
      return refuse(
        response,
        problem(
          'method_not_allowed',
          'Queries are sent with POST. A browser finds the explorer here.',
          {},
          { Allow: 'POST' },
        ),
      );
    const { type, body, headers } = page();
    response.set({ 'Content-Type': type, 'Cache-Control': 'no-cache', Vary: 'Accept', ...headers }).send(body);
  };
}

const PATH = /^\/graphql\/?(?:\?|$)/i;

interface GateParts {
  apollo: ApolloServer<Context>;
  walk: QueryLimits;
  done(entry: RestEntry): void;
}

function gate(platform: Platform, { apollo, walk, done }: GateParts, behind: RequestListener): RequestListener {
  const handle = async (request: Posted, response: ServerResponse): Promise<void> => {
    const ctx = contextOf(platform, request, response, done);
    try {
      ctx.identity = await identify(platform, request, ctx.address);
      requireJson(request);
      const { accept } = request.headers;
      const type = acceptsEventStream(accept) ? null : acceptable(accept, 'application/graphql-response+json');
      request.body = await parseBody(request, limits.graphqlBodyBytesMax);
      const asked = admitQuery(walk, request.body);
      if (type) return await answer(apollo, asked, ctx, response, type);
    } catch (error) {
      return refuseError(platform, error, request, response);
    }
    behind(request, response);
  };
  return (request, response) =>
    request.method === 'POST' && PATH.test(request.url as string)
      ? void handle(request, response)
      : behind(request, response);
}

async function answer(
  apollo: ApolloServer<Context>,
  asked: GraphQLRequest,
  ctx: Context,
  response: ServerResponse,
  type: string,
): Promise<void> {
  const { http, body } = await apollo.executeOperation(asked, { contextValue: ctx });
  if (body.kind !== 'single') throw new Error('an answer in parts: nothing here makes one');
  const { errors: found, data, extensions } = body.singleResult;
  sendText(
    response,
    http.status ?? 200,
    { ...Object.fromEntries(http.headers), 'content-type': `${type}; charset=utf-8` },
    JSON.stringify({ errors: found, data, extensions }),
    false,
  );
}

/** As Express and Apollo find it. */
type Posted = IncomingMessage & { body?: Record<string, unknown> };

const requireAdmitted: RequestHandler = (_, response, next) => {
  if (!localsOf(response).ctx) throw problem('route_not_found');
  next();
};

function contextOf(
  platform: Platform,
  request: IncomingMessage,
  response: ServerResponse,
  done: (entry: RestEntry) => void,
): Context {
  const ctx = requestContext(platform, request, String(response.getHeader('X-Request-Id')));
  const started = performance.now();
  localsOf(response).ctx = ctx;
  response.once('close', () => done(entryOf(request, response, ctx, started)));
  return ctx;
}

function entryOf(request: IncomingMessage, response: ServerResponse, ctx: Context, started: number): RestEntry {
  const { request_id, identity } = ctx;
  const { code, project } = outcomes.get(ctx.reply) ?? { code: null, project: null };
  return {
    request,
    started,
    request_id,
    operation: 'graphql',
    status: response.statusCode,
    identity,
    project,
    code,
    cause: null,
  };
}

/** Who is calling, before anything of the body is read; null for a stranger. */
async function identify(platform: Platform, request: IncomingMessage, address: string): Promise<Identity | null> {
  const { authorization, cookie } = request.headers;
  if (authorization !== undefined) return authenticate(platform, authorization, address);
  const secret = readSessionCookie(platform.config, cookie);
  if (!secret) return null;
  requireOwnOrigin(request, platform.config.baseUrl);
  return platform.identities.ofSession(secret);
}

// Browsers send Origin with every POST; a page of another site can't leave it out or change it.
function requireOwnOrigin(request: IncomingMessage, baseUrl: string): void {
  const { origin, host } = request.headers;
  if (origin === undefined && request.headers['sec-fetch-site'] === undefined) return;
  if (origin === new URL(baseUrl).origin || origin === `http://${host}` || origin === `https://${host}`) return;
  throw problem('csrf_rejected');
}

// A form, or text, is what a page of another site can send without asking first.
function requireJson({ headers }: IncomingMessage): void {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers;
  if (!/^application\/json\s*(?:;|$)/i.test(type) || encoding !== 'identity') throw problem('unsupported_media_type');
}

/** The size and shape of the query; Apollo sees only what passed. */
function admitQuery(
  walk: QueryLimits,
  { query, variables, operationName, extensions }: Record<string, unknown>,
): GraphQLRequest {
  if (typeof query !== 'string' || query.trim() === '')
    throw problem('graphql_invalid', 'The body must be a JSON object with a query.');
  if (operationName != null && typeof operationName !== 'string')
    throw problem('graphql_invalid', 'operationName must be a string.');
  if (!isObject(variables)) throw problem('graphql_invalid', 'variables must be a JSON object.');
  if (!isObject(extensions)) throw problem('graphql_invalid', 'extensions must be a JSON object.');
  walk(query, variables ?? {});
  return {
    query,
    variables: variables ?? undefined,
    operationName: operationName ?? undefined,
    extensions: extensions ?? undefined,
  };
}

const isObject = (value: unknown): value is Record<string, unknown> | null | undefined =>
  value == null || (typeof value === 'object' && !Array.isArray(value));

type Ready = GraphQLRequestContextWillSendResponse<Context>;

function responsePlugin({ log }: Platform): ApolloServerPlugin<Context> {
  return {
    requestDidStart: async () => ({
      async didEncounterErrors({ errors: found, contextValue }) {
        for (const error of found)
          if (problemOf(error).code === 'internal_error')
            log.error({ err: error.originalError ?? error, request_id: contextValue.request_id }, 'request failed');
      },
      async willSendResponse(ready) {
        ready.response.http.headers.set('cache-control', 'no-store');
        for (const [name, value] of Object.entries(ready.contextValue.reply.headers))
          ready.response.http.headers.set(name.toLowerCase(), value);
        if (ready.errors?.length) attachErrors(ready, ready.errors);
      },
    }),
  };
}

// Where nothing could be answered, the status and headers are those of REST for what any client in between acts on.
const STATUSES = new Set([401, 429, 500, 503]);

function attachErrors({ response, contextValue }: Ready, found: readonly GraphQLError[]): void {
  if (response.body.kind !== 'single') return;
  const result = response.body.singleResult;
  result.errors = result.errors?.map((error) => ({
    ...error,
    extensions: { ...error.extensions, request_id: contextValue.request_id },
  }));
  const first = problemOf(found[0] as GraphQLError);
  outcomes.set(contextValue.reply, { code: first.code, project: contextValue.project });
  if (!result.data && STATUSES.has(first.status)) {
    response.http.status = first.status;
    if (first.status === 401) response.http.headers.set('www-authenticate', 'Bearer realm="platform"');
  }
  const after = first.headers['Retry-After'];
  if (after) response.http.headers.set('retry-after', after);
}

/** What a client may know of an error of Apollo, of a resolver, or of anything below. */
function problemOf(error: GraphQLError): Problem {
  const cause = error.originalError ?? error;
  if (cause instanceof Problem) return cause;
  const own =
    cause instanceof GraphQLError &&
    /^(GRAPHQL_|BAD_USER_INPUT|BAD_REQUEST|OPERATION_)/.test(String(error.extensions?.code ?? ''));
  return own ? problem('graphql_invalid', error.message) : problem('internal_error');
}

function formatError(error: unknown): GraphQLFormattedError {
  const { locations, path } = error as GraphQLError;
  const failure = problemOf(error as GraphQLError);
  return { message: failure.detail, locations, path, extensions: extensionsOf(failure) };
}

function formatAndLogError({ log }: Platform, error: unknown): GraphQLFormattedError {
  const cause = error as GraphQLError;
  if (problemOf(cause).code === 'internal_error')
    log.error({ err: cause.originalError ?? cause }, 'a subscription failed');
  return formatError(error);
}

function extensionsOf(failure: Problem): Record<string, unknown> {
  const { title, retryable } = errors[failure.code];
  return { ...failure.members, code: failure.code, status: failure.status, title, retryable };
}

function refuse(response: ServerResponse, failure: Problem): void {
  const request_id = response.getHeader('X-Request-Id');
  const { ctx } = localsOf(response);
  if (ctx) outcomes.set(ctx.reply, { code: failure.code, project: null });
  const text = JSON.stringify({
    errors: [{ message: failure.detail, extensions: { ...extensionsOf(failure), request_id } }],
  });
  sendText(
    response,
    failure.status,
    { ...ctx?.reply.headers, ...failure.headers, 'Content-Type': 'application/json; charset=utf-8' },
    text,
    response.req.method === 'HEAD',
  );
}

/** So much of a refused body is read, so that the connection goes on: a new one costs more. */
const DRAINED_BODY_BYTES_MAX = 16 << 10;

function refuseErrors(platform: Platform): ErrorRequestHandler {
  return (error: Error, request, response, _next) => refuseError(platform, error, request, response);
}

function refuseError({ log }: Platform, error: unknown, request: IncomingMessage, response: ServerResponse): void {
  const failure = asProblem(error);
  if (failure !== error) log.error({ err: error, request_id: response.getHeader('X-Request-Id') }, 'request failed');
  if (response.headersSent) return;
  if (!request.complete && Number(request.headers['content-length'] ?? Infinity) > DRAINED_BODY_BYTES_MAX)
    response.setHeader('Connection', 'close');
  refuse(response, failure);
}
