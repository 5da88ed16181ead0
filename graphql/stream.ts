// Subscriptions of the GraphQL face over server-sent events (GraphQL over SSE, distinct connections mode), beside
// Apollo, which does not carry them. Same callers, same limits on the query, same errors.
import type { RequestHandler } from 'express';
import {
  execute,
  getOperationAST,
  GraphQLError,
  parse,
  subscribe,
  validate,
  type ExecutionResult,
  type GraphQLFormattedError,
  type GraphQLSchema,
} from 'graphql';
import { createHandler } from 'graphql-sse/lib/use/express';
import type { Context } from '../core/context';
import { problem } from '../core/errors';
import { abortOnDisconnect } from '../rest/disconnect';
import { countStream } from '../rest/event_stream';

/** Handles what asks for a stream, and nothing else comes here. @param format what a client may know of an error */
export function subscriptions(
  schema: GraphQLSchema,
  format: (error: unknown) => GraphQLFormattedError,
): RequestHandler {
  const handler = createHandler({
    onSubscribe: (request, { query, variables, operationName }) =>
      run(schema, format, (request.context.res.locals as { ctx: Context }).ctx, {
        query: String(query),
        variables,
        operationName,
      }),
  });
  return async (request, response) => {
    const { ctx } = response.locals as { ctx: Context };
    const leave = countStream(ctx.identity?.account_id ?? '');
    response.once('close', leave);
    ctx.signal = abortOnDisconnect(response, ctx.signal);
    await handler(request, response);
  };
}

interface SubscriptionRequest {
  query: string;
  variables: Record<string, unknown> | null | undefined;
  operationName: string | null | undefined;
}

type ExecutionResults = ExecutionResult | AsyncGenerator<ExecutionResult, void>;

async function run(
  schema: GraphQLSchema,
  format: (error: unknown) => GraphQLFormattedError,
  contextValue: Context,
  asked: SubscriptionRequest,
): Promise<ExecutionResults> {
  const document = parse(asked.query);
  const wrong = validate(schema, document);
  if (wrong.length) return formatErrors({ errors: wrong }, format);
  const args = { schema, document, contextValue, variableValues: asked.variables, operationName: asked.operationName };
  const live = getOperationAST(document, asked.operationName)?.operation === 'subscription';
  const result = await (live ? subscribe(args) : execute(args));
  return Symbol.asyncIterator in result ? formatAllErrors(result, format) : formatErrors(result, format);
}

async function* formatAllErrors(
  results: AsyncGenerator<ExecutionResult, void>,
  format: (error: unknown) => GraphQLFormattedError,
): AsyncGenerator<ExecutionResult, void> {
  for await (const result of results) yield formatErrors(result, format);
}

// graphql-sse takes what names no data for arguments, which it would then execute.
function formatErrors(result: ExecutionResult, format: (error: unknown) => GraphQLFormattedError): ExecutionResult {
  return result.errors
    ? { ...result, data: result.data, errors: result.errors.map((error) => format(toRequestError(error))) as never }
    : result;
}

/** What graphql-js finds wrong before it runs anything has no path: it is an error of the client, as with Apollo. */
function toRequestError(error: GraphQLError): GraphQLError {
  if (error.path || error.originalError) return error;
  const { message, nodes, source, positions } = error;
  return new GraphQLError(message, { nodes, source, positions, originalError: problem('graphql_invalid', message) });
}
