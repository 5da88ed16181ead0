// Operations of the GraphQL face over server-sent events (GraphQL over SSE, distinct connections mode), beside Apollo,
// which does not carry subscriptions. Same callers, same limits on the query, same errors.
import type { ServerResponse } from 'node:http';
import {
  getOperationAST,
  GraphQLError,
  parse,
  subscribe,
  validate,
  type ExecutionResult,
  type GraphQLFormattedError,
  type GraphQLSchema,
} from 'graphql';
import type { Context } from '../../core/context';
import { abortOnDisconnect } from '../../rest/disconnect';
import { countStream, openEventStream, stopping, type EventStream } from '../../rest/event_stream';
import { asProblem } from '../../rest/problem';
import { VARIABLE_ERRORS, type Executor } from './compiled_queries';
import { outcomes, problemOf } from './errors';
import type { GraphqlRequest } from './request';

type FormatError = (error: unknown) => GraphQLFormattedError;

/** Sends what an operation answers as events, the one result of a query too. @throws rate_limited: too many streams */
export type SendStream = (response: ServerResponse, ctx: Context, asked: GraphqlRequest) => Promise<void>;

/** @param format what a client may know of an error */
export function streams(schema: GraphQLSchema, execute: Executor, format: FormatError): SendStream {
  return async (response, ctx, query) => {
    const leave = countStream(ctx);
    try {
      ctx.signal = abortOnDisconnect(response, ctx.signal);
      const results = await run(schema, execute, ctx, query);
      const stream = openEventStream(response, ctx, ctx.signal);
      await sendResults(stream, response, ctx, results, (result) => formatErrors(ctx, result, format));
    } finally {
      leave();
    }
  };
}

type Results = ExecutionResult | AsyncGenerator<ExecutionResult, void>;

async function run(schema: GraphQLSchema, execute: Executor, ctx: Context, request: GraphqlRequest): Promise<Results> {
  const source = request.query;
  const document = parse(source);
  const wrong = validate(schema, document);
  if (wrong.length) return { errors: wrong };
  const { operationName, variables } = request;
  if (getOperationAST(document, operationName)?.operation !== 'subscription')
    return execute({ source, document, context: ctx, request: { operationName, variables } });
  return subscribe({
    ...{ schema, document, contextValue: ctx, variableValues: variables, operationName },
    options: VARIABLE_ERRORS,
  });
}

/** What PROTOCOL.md of GraphQL over SSE calls `complete`: it is not sent where the client should connect again. */
const COMPLETE = 'event: complete\ndata:\n\n';

const formatNext = (result: ExecutionResult): string => `event: next\ndata: ${JSON.stringify(result)}\n\n`;

async function sendResults(
  stream: EventStream,
  response: ServerResponse,
  ctx: Context,
  results: Results,
  format: (result: ExecutionResult) => ExecutionResult,
): Promise<void> {
  try {
    if (Symbol.asyncIterator in results)
      for await (const result of results) await stream.write(formatNext(format(result)));
    else await stream.write(formatNext(format(results)));
    if (ctx.signal.aborted && !response.destroyed) throw stopping();
    stream.end(COMPLETE);
  } catch (error) {
    const failure = asProblem(error);
    const last = format({ errors: [new GraphQLError(failure.detail, { originalError: error as Error })] });
    stream.end(formatNext(last) + (failure.retryable ? '' : COMPLETE));
  }
}

function formatErrors(ctx: Context, result: ExecutionResult, format: FormatError): ExecutionResult {
  if (!result.errors) return result;
  const { code } = problemOf(result.errors[0] as GraphQLError);
  outcomes.set(ctx.reply, { code, project: ctx.project });
  const errors = result.errors.map((error) => {
    const formatted = format(error);
    return { ...formatted, extensions: { ...formatted.extensions, request_id: ctx.request_id } };
  });
  return { ...result, errors: errors as never };
}
