// Errors of the GraphQL face: what a client may know of them, and the status and headers that go with them.
import type { ApolloServerPlugin, GraphQLRequestContextWillSendResponse } from '@apollo/server';
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import type { Context, ProjectAccess, Reply } from '../../core/context';
import { errors, problem, Problem, type ErrorCode } from '../../core/errors';
import type { Platform } from '../platform/platform';
import { challengeOf } from '../../rest/problem';

/** What became of a request, for the log. Apollo works on a copy of the context; the reply in it is the same. */
export const outcomes = new WeakMap<Reply, { code: ErrorCode; project: ProjectAccess | null }>();

type Ready = GraphQLRequestContextWillSendResponse<Context>;

/** Sets the headers of a reply, logs internal errors, and completes errors with the id of the request. */
export function responsePlugin({ log }: Platform): ApolloServerPlugin<Context> {
  return {
    requestDidStart: async () => ({
      async didEncounterErrors({ errors: found, contextValue }) {
        for (const error of found)
          if (problemOf(error).code === 'internal_error')
            log.error({ err: error.originalError ?? error, request_id: contextValue.request_id }, 'request failed');
      },
      async willSendResponse(ready) {
        ready.response.http.headers.set('cache-control', 'no-store');
        if (ready.errors?.length) attachErrors(ready, ready.errors);
      },
    }),
  };
}

// If no field has data, status and headers are those of REST, for clients and proxies that act on them.
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
    for (const value of Object.values(challengeOf(first, contextValue.config.baseUrl)))
      response.http.headers.set('www-authenticate', value);
  }
  const after = first.headers['Retry-After'];
  if (after) response.http.headers.set('retry-after', after);
}

/** What a client may know of an error of Apollo, of graphql-js, of a resolver, or of anything below. */
export function problemOf(error: GraphQLError): Problem {
  const cause = error.originalError ?? error;
  if (cause instanceof Problem) return cause;
  // What graphql-js and Apollo find wrong with a request: where nothing ran yet it has no path (the fiftieth wrong
  // variable has no code either), and where it is an argument it names the node. What a resolver answered does neither.
  const isOfRequest =
    cause instanceof GraphQLError &&
    (!error.path || Boolean(cause.nodes?.length)) &&
    cause.extensions.code !== 'INTERNAL_SERVER_ERROR';
  return isOfRequest ? problem('graphql_invalid', error.message) : problem('internal_error');
}

export function formatError(error: unknown): GraphQLFormattedError {
  const { locations, path } = error as GraphQLError;
  const failure = problemOf(error as GraphQLError);
  return { message: shorten(failure.detail), locations, path, extensions: extensionsOf(failure) };
}

const MESSAGE_CHARACTERS_MAX = 1_000;

/** Cuts the middle, where graphql-js repeats the value of a variable; the cause stands at the end. */
function shorten(message: string): string {
  if (message.length <= MESSAGE_CHARACTERS_MAX) return message;
  return `${message.slice(0, MESSAGE_CHARACTERS_MAX / 2)} … ${message.slice(-MESSAGE_CHARACTERS_MAX / 2)}`;
}

export function formatAndLogError({ log }: Platform, error: unknown): GraphQLFormattedError {
  const cause = error as GraphQLError;
  if (problemOf(cause).code === 'internal_error')
    log.error({ err: cause.originalError ?? cause }, 'a subscription failed');
  return formatError(error);
}

export function extensionsOf(failure: Problem): Record<string, unknown> {
  const { title } = errors[failure.code];
  const { retryable } = failure;
  return { ...failure.members, code: failure.code, status: failure.status, title, retryable };
}
