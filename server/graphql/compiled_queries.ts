// How Apollo runs an operation: a repeated query is compiled, as the REST operations are at boot. This costs a quarter
// of walking the document anew for each row (docs/decisions/0025). The first time it is walked, because compiling costs
// more than one run: a client that never repeats a query causes no compilation.
import type { ApolloServerOptionsWithGateway } from '@apollo/server';
import {
  BREAK,
  execute,
  getOperationAST,
  getVariableValues,
  GraphQLError,
  Source,
  visit,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  type SourceLocation,
} from 'graphql';
import { compileQuery, isCompiledQuery, type CompiledQuery } from 'graphql-jit';
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';

/** The cache entry of a text: seen once, unsuitable for compiling, or its function. */
type Execution = 'seen' | 'plain' | CompiledQuery['query'];

type Gateway = ApolloServerOptionsWithGateway<Context>['gateway'];

interface ExecutionRequest {
  source: string;
  document: DocumentNode;
  context: unknown;
  /** `operationName` of the request; Apollo's is null for an operation that does not exist. */
  request: { operationName?: string; variables?: Record<string, unknown> };
}

/** Each error of a variable repeats its whole value. */
export const VARIABLE_ERRORS = { maxCoercionErrors: 20 } as const;
const KEPT_MAX = 256;
/** Longer queries are rare, and compile time grows with the length. */
const SOURCE_LENGTH_MAX = 4_000;

/** For the `gateway` of an Apollo Server: the place where it lets others execute. */
export function compiling(schema: GraphQLSchema, run: Executor): Gateway {
  return {
    load: async () => ({ executor: run as never }),
    onSchemaLoadOrUpdate(onLoad) {
      onLoad({ apiSchema: schema, coreSupergraphSdl: '' });
      return () => undefined;
    },
    stop: async () => undefined,
  };
}

export type Executor = (request: ExecutionRequest) => Promise<ExecutionResult>;

/** Answers the same as `execute` of graphql-js, whichever way it takes. */
export function executor(schema: GraphQLSchema): Executor {
  // In the order of their last use.
  const known = new Map<string, Execution>();
  return async ({ source, document, context, request: { operationName, variables } }) => {
    const key = `${operationName ?? ''}\n${source}`;
    const way = chooseExecution(schema, document, operationName, source, known.get(key));
    remember(known, key, way);
    if (typeof way === 'function' && areVariablesValid(schema, document, operationName, variables))
      return withGraphqlErrors(await way(undefined, context, variables ?? {}), source);
    return execute({
      ...{ schema, document, operationName, contextValue: context, variableValues: variables },
      options: VARIABLE_ERRORS,
    });
  };
}

function chooseExecution(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | undefined,
  source: string,
  before: Execution | undefined,
): Execution {
  if (before === undefined) return source.length > SOURCE_LENGTH_MAX || !isCompilable(document) ? 'plain' : 'seen';
  if (before !== 'seen') return before;
  // as rest/facade.ts
  const compiled = compileQuery(schema, document, operationName, { disableLeafSerialization: true });
  return isCompiledQuery(compiled) ? compiled.query : 'plain';
}

// Errors of variables are left to graphql-js, with its messages.
function areVariablesValid(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | undefined,
  variables: Record<string, unknown> = {},
): boolean {
  const definitions = getOperationAST(document, operationName)?.variableDefinitions ?? [];
  return !definitions.length || !getVariableValues(schema, definitions, variables, { maxErrors: 0 }).errors;
}

// Errors of the compiler are not instances of GraphQLError and lack members that Apollo relies on.
function withGraphqlErrors(result: ExecutionResult, source: string): ExecutionResult {
  if (!result.errors) return result;
  return { ...result, errors: result.errors.map((error) => toGraphqlError(error, source)) };
}

// A variable with a default may be null where the argument may not (GraphQL specification, section 5.8.5). The compiler
// says so without saying that it is an error of the request.
const OF_ARGUMENT = /^Argument "/;

function toGraphqlError({ message, locations, path, originalError }: GraphQLError, text: string): GraphQLError {
  const isOfRequest = !originalError && OF_ARGUMENT.test(message);
  return new GraphQLError(message, {
    source: new Source(text),
    positions: locations?.map((location) => offsetOf(text, location)),
    path,
    originalError: isOfRequest ? problem('graphql_invalid', message) : originalError,
  });
}

function offsetOf(text: string, { line, column }: SourceLocation): number {
  const before = text.split(/\r\n|\n|\r/, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  return before + column - 1;
}

// The parts of a mutation run one after the other, which is the business of graphql-js; and the compiler loses sight of
// conditions inside fragments (zalando-incubator/graphql-jit, pull request 197).
function isCompilable(document: DocumentNode): boolean {
  let found = true;
  visit(document, {
    OperationDefinition: (node) => (node.operation === 'query' ? undefined : no()),
    Directive: no,
    Field: (node) => (node.name.value.startsWith('__') && node.name.value !== '__typename' ? no() : undefined),
  });
  return found;

  function no(): typeof BREAK {
    found = false;
    return BREAK;
  }
}

function remember(known: Map<string, Execution>, key: string, way: Execution): void {
  known.delete(key);
  known.set(key, way);
  if (known.size > KEPT_MAX) known.delete(known.keys().next().value as string);
}
