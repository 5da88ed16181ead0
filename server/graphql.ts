// The GraphQL face: Apollo Server on Express with the same keys, rules and errors as REST, and sessions for the dashboard.
import type { IncomingMessage } from 'node:http';
import { ApolloServer, type ApolloServerPlugin } from '@apollo/server';
import { expressMiddleware } from '@as-integrations/express5';
import express, { type RequestHandler, type Response, type Router } from 'express';
import { GraphQLError, type GraphQLFormattedError, type GraphQLSchema } from 'graphql';
import type { Context, Identity } from '../core/context';
import { errors, problem, Problem } from '../core/errors';
import { limits } from '../core/limits';
import type { Logger } from '../core/log';
import { sessionSecret } from '../core/session_cookie';
import { bearerToken } from '../rest/bearer';
import { asProblem } from '../rest/problem';
import { authenticate } from './authenticate';
import { requestContext } from './context';
import type { Platform } from './platform';
import { parseLimited } from './query_limits';

type Locals = { ctx: Context };
type Page = () => { type: string; body: string | Buffer; headers?: Record<string, string> };

/** Routes of /graphql: GET is the explorer, POST runs one operation. */
export async function graphqlRouter(platform: Platform, schema: GraphQLSchema, explorer: Page): Promise<{ router: Router; stop(): Promise<void> }> {
  const apollo = new ApolloServer<Context>({
    schema,
    introspection: true,
    csrfPrevention: true,
    allowBatchedHttpRequests: false,
    includeStacktraceInErrorResponses: false,
    stopOnTerminationSignals: false,
    hideSchemaDetailsFromClientErrors: false,
    formatError: (_, error) => formatError(error, platform.log),
    plugins: [replyHeaders],
    logger: platform.log.child({}, { level: 'error' }),
  });
  await apollo.start();
  const router = express.Router();
  router.get('/', explore(explorer));
  router.post('/', express.json({ limit: limits.graphqlBodyBytesMax, strict: true }), admitQuery(platform), expressMiddleware(apollo, { context: async ({ res }) => (res.locals as Locals).ctx }));
  router.all('/', (_, response) => refuse(response, problem('method_not_allowed', undefined, {}, { Allow: 'GET, POST' })));
  router.use(((error, _request, response, _next) => refuse(response, bodyProblem(error))) as express.ErrorRequestHandler);
  return { router, stop: () => apollo.stop() };
}

function explore(page: Page): RequestHandler {
  return (request, response) => {
    if (!request.accepts('html')) return refuse(response, problem('method_not_allowed', 'Queries are sent with POST.', {}, { Allow: 'POST' }));
    const { type, body, headers } = page();
    response.set({ 'Content-Type': type, 'Cache-Control': 'no-cache', ...headers }).send(body);
  };
}

/** Who is calling, then the size and shape of the query; Apollo sees only what passed. */
function admitQuery(platform: Platform): RequestHandler {
  return async (request, response, next) => {
    const ctx = requestContext(platform, 'graphql', request, String(response.getHeader('X-Request-Id')));
    (response.locals as Locals).ctx = ctx;
    try {
      ctx.identity = await identify(platform, request, ctx.address);
      const { query } = (request.body ?? {}) as { query?: unknown };
      if (typeof query !== 'string' || Array.isArray(request.body)) throw problem('graphql_invalid', 'The body must be a JSON object with a query.');
      parseLimited(query);
      next();
    } catch (error) {
      if (!(error instanceof Problem)) platform.log.error({ err: error, request_id: ctx.request_id }, 'request failed');
      refuse(response, asProblem(error));
    }
  };
}

async function identify(platform: Platform, request: IncomingMessage, address: string): Promise<Identity | null> {
  if (request.headers.authorization !== undefined) return authenticate(platform, bearerToken(request.headers.authorization), address);
  const secret = sessionSecret(platform.config, request.headers.cookie);
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

const replyHeaders: ApolloServerPlugin<Context> = {
  requestDidStart: async () => ({
    async willSendResponse({ contextValue, response }) {
      for (const [name, value] of Object.entries(contextValue.reply?.headers ?? {})) response.http.headers.set(name.toLowerCase(), value);
    },
  }),
};

function formatError(error: unknown, log: Logger): GraphQLFormattedError {
  const graphql = error as GraphQLError;
  const cause = graphql.originalError ?? graphql;
  const { message, locations, path } = graphql;
  if (cause instanceof Problem) return { message: cause.detail, locations, path, extensions: extensionsOf(cause) };
  const own = cause instanceof GraphQLError && /^(GRAPHQL_|BAD_USER_INPUT|BAD_REQUEST|OPERATION_)/.test(String(graphql.extensions?.code ?? ''));
  if (own) return { message, locations, path, extensions: extensionsOf(problem('graphql_invalid', message)) };
  log.error({ err: cause }, 'request failed');
  const hidden = problem('internal_error');
  return { message: hidden.detail, path, extensions: extensionsOf(hidden) };
}

function extensionsOf(failure: Problem): Record<string, unknown> {
  const { title, retryable } = errors[failure.code];
  return { ...failure.members, code: failure.code, status: failure.status, title, retryable };
}

function refuse(response: Response, failure: Problem): void {
  const request_id = response.getHeader('X-Request-Id');
  const { ctx } = response.locals as Partial<Locals>;
  response.status(failure.status).set({ ...ctx?.reply.headers, ...failure.headers });
  response.json({ errors: [{ message: failure.detail, extensions: { ...extensionsOf(failure), request_id } }] });
}

function bodyProblem(error: { type?: string }): Problem {
  if (error.type === 'entity.too.large') return problem('payload_too_large', undefined, { limit_bytes: limits.graphqlBodyBytesMax });
  if (error.type === 'entity.parse.failed' || error.type === 'charset.unsupported') return problem('malformed_json');
  return problem('malformed_request');
}
