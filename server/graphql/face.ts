// The GraphQL face: Apollo Server with the same keys, rules and errors as REST, and sessions for the dashboard. Express
// has the explorer.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { ApolloServer } from '@apollo/server';
import { ApolloServerPluginCacheControlDisabled } from '@apollo/server/plugin/disabled';
import express, { type ErrorRequestHandler, type RequestHandler, type Response, type Router } from 'express';
import { getIntrospectionQuery, type GraphQLSchema } from 'graphql';
import type { Context, Reply } from '../../core/context';
import { problem, type Problem } from '../../core/errors';
import { limits } from '../../core/limits';
import { requestContext } from '../platform/context';
import type { Platform } from '../platform/platform';
import { graphqlTypes } from '../../rest/conditional';
import type { RestEntry } from '../../rest/exchange';
import { asProblem, challengeOf } from '../../rest/problem';
import { parseBody } from '../../rest/request';
import { sendText } from '../../rest/send_text';
import { compiling, executor, type Executor } from './compiled_queries';
import { extensionsOf, formatAndLogError, formatError, outcomes, responsePlugin } from './errors';
import { openIntrospection, type Executed, type Introspection } from './introspection';
import { keptDocuments } from './kept_documents';
import { queryLimits, type QueryLimits, type QueryNature } from './query_limits';
import {
  identify,
  opensExplorer,
  readRequest,
  readUrl,
  requireDistinctConnection,
  requireJson,
  requireOwnPage,
  type GraphqlRequest,
} from './request';
import { openAnonymousLimits, tokensMax, type AnonymousLimits } from './anonymous_limits';
import { streams, type SendStream } from './stream';

/** What the handlers of one request share. */
interface Locals {
  ctx: Context;
}

type Page = () => { type: string; body: string | Buffer; headers?: Record<string, string> };

interface GraphqlFace {
  router: Router;
  /**
   * Handles POST /graphql, and GET of other clients than browsers that open the explorer, before Express:
   * authentication, limits and execution. Behind Express a rejection would cost three times as much.
   */
  gate(express: RequestListener): RequestListener;
  stop(): Promise<void>;
}

/**
 * Routes of /graphql: GET is the explorer or runs a query of the URL, POST runs one operation. The first of them
 * prepares the schema. @param done called once for each operation, for the log and the metrics
 */
export function graphqlFace(
  platform: Platform,
  schema: () => GraphQLSchema,
  explorer: Page,
  done: (entry: RestEntry) => void = () => {},
): GraphqlFace {
  let started: Promise<Prepared> | undefined;
  const prepared = (): Promise<Prepared> => (started ??= prepare(platform, schema()));
  const [introspection, anonymous] = [openIntrospection(platform), openAnonymousLimits(platform)];
  const parts: GateParts = { prepared, introspection, anonymous, done };
  const router = express.Router();
  router.get('/', serveExplorer(explorer));
  // Operations are handled by `gate`.
  router.post('/', (_, response) => respondWithProblem(response, problem('route_not_found')));
  router.all('/', (_, response) =>
    respondWithProblem(response, problem('method_not_allowed', undefined, {}, { Allow: 'GET, HEAD, POST' })),
  );
  router.use(respondToErrors(platform));
  const stop = async (): Promise<void> => (await started)?.apollo.stop();
  return { router, gate: (behind) => gate(platform, parts, behind), stop };
}

async function prepare(platform: Platform, schema: GraphQLSchema): Promise<Prepared> {
  const run = executor(schema);
  return {
    apollo: await startApollo(platform, schema, run),
    walk: queryLimits(schema, getIntrospectionQuery(FULL_INTROSPECTION)),
    stream: streams(schema, run, (error) => formatAndLogError(platform, error)),
  };
}

/** The options of the common tools. */
const FULL_INTROSPECTION = {
  specifiedByUrl: true,
  directiveIsRepeatable: true,
  schemaDescription: true,
  inputValueDeprecation: true,
  oneOf: true,
};

async function startApollo(platform: Platform, schema: GraphQLSchema, run: Executor): Promise<ApolloServer<Context>> {
  const apollo = new ApolloServer<Context>({
    gateway: compiling(schema, run),
    introspection: true,
    persistedQueries: false,
    documentStore: keptDocuments(),
    includeStacktraceInErrorResponses: false,
    stopOnTerminationSignals: false,
    hideSchemaDetailsFromClientErrors: false,
    formatError: (_, error) => formatError(error),
    // Apollo's plugin visits each field of each row, a quarter of a list's cost, for a header that is always the same.
    plugins: [ApolloServerPluginCacheControlDisabled(), responsePlugin(platform)],
    logger: platform.log.child({}, { level: 'error' }),
  });
  await apollo.start();
  return apollo;
}

/** Express keeps what stands there before it. */
const localsOf = (response: ServerResponse): Partial<Locals> => ((response as Response).locals ??= {});

/** A query in the URL is not run for it. */
function serveExplorer(page: Page): RequestHandler {
  return (_, response) => {
    const { type, body, headers } = page();
    response.set({ 'Content-Type': type, 'Cache-Control': 'no-cache', Vary: 'Accept', ...headers }).send(body);
  };
}

const PATH = /^\/graphql\/?(?:\?|$)/i;

interface Prepared {
  apollo: ApolloServer<Context>;
  walk: QueryLimits;
  stream: SendStream;
}

interface GateParts {
  prepared(): Promise<Prepared>;
  introspection: Introspection;
  anonymous: AnonymousLimits;
  done(entry: RestEntry): void;
}

function gate(platform: Platform, parts: GateParts, behind: RequestListener): RequestListener {
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const ctx = contextOf(platform, request, response, parts.done);
    try {
      await answer(platform, parts, ctx, request, response);
    } catch (error) {
      respondToError(platform, error, request, response);
    }
  };
  return (request, response) =>
    PATH.test(request.url as string) && isOperation(request)
      ? void handle(request, response)
      : behind(request, response);
}

const isRead = ({ method }: IncomingMessage): boolean => method === 'GET' || method === 'HEAD';

const isOperation = (request: IncomingMessage): boolean =>
  request.method === 'POST' || (isRead(request) && !opensExplorer(request));

/** Admits a request and answers it. */
async function answer(
  platform: Platform,
  parts: GateParts,
  ctx: Context,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  ctx.identity = await identify(platform, request, ctx.address);
  if (!isRead(request)) requireJson(request);
  else if (ctx.identity?.kind === 'session') requireOwnPage(request, platform.config.baseUrl);
  requireDistinctConnection(request);
  const { json, events } = graphqlTypes(request.headers.accept);
  const sent = isRead(request) ? readUrl(request.url) : await parseBody(request, limits.graphqlBodyBytesMax);
  const operation = readRequest(sent);
  const { apollo, walk, stream } = await parts.prepared();
  const nature = await weigh(walk, parts, ctx, operation);
  if (nature.mutates && isRead(request))
    throw problem('method_not_allowed', 'Mutations are sent with POST.', {}, { Allow: 'POST' });
  if (nature.subscribes && !events)
    throw problem('not_acceptable', 'Subscriptions are sent as server-sent events: accept text/event-stream.');
  if (nature.subscribes || !json) return stream(response, ctx, operation);
  const { query, operationName } = operation;
  const run = (): Promise<Executed> => execute(apollo, operation, ctx);
  const { status, headers, text } = nature.isSchemaOnly
    ? await parts.introspection.answer({ query, operationName, isConstant: nature.isConstant }, run)
    : await run();
  if (!ctx.identity && outcomes.get(ctx.reply)?.code !== 'graphql_invalid') parts.anonymous.remember(query);
  const { etag } = ctx.reply;
  const own = {
    ...headers,
    ...lowerCase(ctx.reply.headers),
    // Of several resources it would not say whose it is.
    ...(etag !== null && nature.rootFields === 1 && { etag }),
    'content-type': `${json}; charset=utf-8`,
  };
  sendText(response, status, own, text, request.method === 'HEAD');
}

/** Computes the cost of a query, and requires that it is within the limits and the caller's budget. */
async function weigh(
  walk: QueryLimits,
  { introspection, anonymous }: GateParts,
  ctx: Context,
  { query, variables = {}, operationName }: GraphqlRequest,
): Promise<QueryNature> {
  if (!ctx.identity) anonymous.chargeText(ctx, query);
  const nature = walk({ query, variables, operationName, tokensMax: tokensMax(ctx) });
  if (!ctx.identity) await anonymous.chargeFields(ctx, nature.rootFields);
  if (nature.introspects) await introspection.charge(ctx);
  return nature;
}

async function execute(apollo: ApolloServer<Context>, request: GraphqlRequest, ctx: Context): Promise<Executed> {
  const { http, body } = await apollo.executeOperation(request, { contextValue: ctx });
  if (body.kind !== 'single') throw new Error('an answer in parts: nothing here makes one');
  const { errors: found, data, extensions } = body.singleResult;
  const text = JSON.stringify({ errors: found, data, extensions });
  return { status: http.status ?? 200, headers: Object.fromEntries(http.headers), text, isWhole: !found };
}

function lowerCase(headers: Reply['headers']): Reply['headers'] {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function contextOf(
  platform: Platform,
  request: IncomingMessage,
  response: ServerResponse,
  done: (entry: RestEntry) => void,
): Context {
  const ctx = requestContext(platform, request, String(response.getHeader('X-Request-Id')));
  const started = performance.now();
  ctx.if_match = request.headers['if-match'];
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

function respondWithProblem(response: ServerResponse, failure: Problem): void {
  const request_id = response.getHeader('X-Request-Id');
  const { ctx } = localsOf(response);
  if (ctx) outcomes.set(ctx.reply, { code: failure.code, project: null });
  const challenge = ctx && challengeOf(failure, ctx.config.baseUrl);
  const text = JSON.stringify({
    errors: [{ message: failure.detail, extensions: { ...extensionsOf(failure), request_id } }],
  });
  sendText(
    response,
    failure.status,
    {
      ...ctx?.reply.headers,
      ...failure.headers,
      ...challenge,
      'Cache-Control': 'no-store',
      'Content-Type': 'application/json; charset=utf-8',
    },
    text,
    response.req.method === 'HEAD',
  );
}

/** So much of a refused body is read, so that the connection goes on: a new one costs more. */
const DRAINED_BODY_BYTES_MAX = 16 << 10;

function respondToErrors(platform: Platform): ErrorRequestHandler {
  return (error: Error, request, response, _next) => respondToError(platform, error, request, response);
}

function respondToError({ log }: Platform, error: unknown, request: IncomingMessage, response: ServerResponse): void {
  const failure = asProblem(error);
  if (failure !== error) log.error({ err: error, request_id: response.getHeader('X-Request-Id') }, 'request failed');
  if (response.headersSent) return;
  if (!request.complete && Number(request.headers['content-length'] ?? Infinity) > DRAINED_BODY_BYTES_MAX)
    response.setHeader('Connection', 'close');
  respondWithProblem(response, failure);
}
