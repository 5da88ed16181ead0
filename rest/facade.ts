// The REST operations as SOFA generates them: the operation table becomes a facade schema with one root field per
// binding and no relations, SOFA writes the document of each, graphql-jit compiles it on the core schema when it is
// first called: all at once would keep the start waiting for a third of a second. SOFA's own handler would read the
// variables from the request once more, and put the answer into a Response only for us to take it out again.
// The untyped seams of sofa-api 0.18 (`__routes`, `execute`) are used only here.
import { getDirective, mapSchema, MapperKind } from '@graphql-tools/utils';
import {
  GraphQLObjectType,
  Kind,
  visit,
  type DocumentNode,
  type FieldNode,
  type GraphQLFieldConfigArgumentMap,
  type GraphQLSchema,
} from 'graphql';
import { compileQuery, isCompiledQuery, type CompiledQuery } from 'graphql-jit';
import { useSofa } from 'sofa-api';
import type { Context } from '../core/context';
import { memoize } from '../core/memoize';
import type { Operation, OperationTable } from '../contract/operations';

/** Runs one operation: resolves to the JSON text of the answer, throws what the resolver threw. */
export interface Handler {
  (ctx: Context, variables: Record<string, unknown>): Promise<string>;
  /** Compiles the operation, otherwise done by its first call. @throws Error for a document that does not compile */
  compile(): Promise<unknown>;
}

interface SofaRoute {
  method: string;
  path: string;
  handler(request: object, context: object): Promise<unknown>;
}

/**
 * One handler per operation id. A contract test compiles all of them.
 * @throws Error where SOFA generated no route for an operation
 */
export function buildFacade(schema: GraphQLSchema, table: OperationTable): Map<string, Handler> {
  const sofa = useSofa({
    basePath: '/',
    schema: facadeSchema(schema, table),
    routes: Object.fromEntries(table.operations.map((operation) => [routeKey(operation), route(operation)])),
    execute: (({ document, contextValue }: { document: DocumentNode; contextValue: Shown }) => {
      contextValue.document = document;
      return { errors: [] };
    }) as never,
    errorHandler: ((errors: readonly Error[]) => rethrow(errors[0])) as never,
  });
  const { __routes: routes } = sofa as unknown as { __routes: SofaRoute[] };
  return new Map(table.operations.map((operation) => [operation.id, handlerOf(schema, operation, routes)]));
}

/** The context of a call of SOFA's handler: where its document is left. */
interface Shown {
  document?: DocumentNode;
}

/** SOFA shows a document only when its handler runs. */
async function documentOf({ handler }: SofaRoute): Promise<DocumentNode> {
  const shown: Shown = {};
  await handler({ url: '', body: null, params: {} }, shown);
  return shown.document as DocumentNode;
}

function rethrow(error: Error | undefined): void {
  if (error) throw error;
}

/** The schema that SOFA sees: bound fields only, one per binding, relations left out. */
export function facadeSchema(schema: GraphQLSchema, table: OperationTable): GraphQLSchema {
  return mapSchema(schema, {
    [MapperKind.OBJECT_FIELD]: (config) => (getDirective(schema, config, 'graphqlOnly') ? null : undefined),
    [MapperKind.ROOT_OBJECT]: (type) => {
      if (type.name === schema.getSubscriptionType()?.name) return null;
      const config = type.toConfig();
      const bound = table.operations.filter(
        (operation) => (operation.field.kind === 'query') === (type.name === schema.getQueryType()?.name),
      );
      const fields = bound.map((operation) => {
        const field = config.fields[operation.field.name] as (typeof config.fields)[string];
        return [operation.key, { ...field, args: argumentsOf(operation, field.args ?? {}) }] as const;
      });
      return new GraphQLObjectType({ ...config, fields: Object.fromEntries(fields) });
    },
  });
}

function argumentsOf(operation: Operation, args: GraphQLFieldConfigArgumentMap): GraphQLFieldConfigArgumentMap {
  const names = [
    ...operation.params.map((param) => param.argument),
    ...operation.query.map((argument) => argument.name),
  ];
  if (operation.field.body) names.push(operation.field.body.argument);
  return Object.fromEntries(names.map((name) => [name, args[name] as GraphQLFieldConfigArgumentMap[string]]));
}

const routeKey = (operation: Operation): string =>
  `${operation.field.kind === 'query' ? 'Query' : 'Mutation'}.${operation.key}`;

// SOFA finds the path's variables by the names of arguments; our own router keeps the public names.
function route(operation: Operation): { method: Operation['method']; path: string; responseStatus: number } {
  let index = 0;
  const path = operation.path.replace(/\{\w+\}/g, () => `:${operation.params[index++]?.argument}`);
  return { method: operation.method, path, responseStatus: 200 };
}

function routeOf(operation: Operation, routes: SofaRoute[]): SofaRoute {
  const { method, path } = route(operation);
  const found = routes.find((candidate) => candidate.method === method && candidate.path === path);
  if (!found) throw new Error(`rest: SOFA generated no route for ${operation.id} (${method} ${path})`);
  return found;
}

function handlerOf(schema: GraphQLSchema, operation: Operation, routes: SofaRoute[]): Handler {
  const route = routeOf(operation, routes);
  const compile = memoize(async () => compileOperation(schema, operation, await documentOf(route)));
  const { key } = operation;
  const handle = async (ctx: Context, variables: Record<string, unknown>): Promise<string> => {
    const { query } = await compile();
    const { data, errors } = await query(undefined, ctx, variables);
    if (errors) throw originalErrorOf(errors[0]);
    return JSON.stringify((data as Record<string, unknown>)[key]);
  };
  return Object.assign(handle, { compile });
}

function compileOperation(schema: GraphQLSchema, operation: Operation, document: DocumentNode): CompiledQuery {
  // The compiler would make the path and location of an error for each value that is printed, in case it is none of its
  // type: 40 % of what a list allocates. Rows are typed by the database, and tests hold every answer against its
  // schema.
  const compiled = compileQuery(schema, renameRootField(document, operation), undefined, {
    disableLeafSerialization: true,
  });
  if (!isCompiledQuery(compiled)) throw new Error(`rest: ${operation.id}: ${JSON.stringify(compiled.errors)}`);
  return compiled;
}

function originalErrorOf(error: (Error & { originalError?: unknown }) | undefined): unknown {
  return error?.originalError ?? error;
}

/** Renames the root field of a further binding: `listVolumes__2` runs `listVolumes` of the core schema. */
function renameRootField(document: DocumentNode, { key, field }: Operation): DocumentNode {
  if (key === field.name) return document;
  return visit(document, {
    Field(node: FieldNode) {
      if (node.name.value !== key) return undefined;
      return { ...node, name: { kind: Kind.NAME, value: field.name }, alias: { kind: Kind.NAME, value: key } };
    },
  });
}
