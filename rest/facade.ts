// The REST operations as SOFA generates them: the operation table becomes a facade schema with one root field per
// binding and no relations, SOFA makes a handler of each, graphql-jit runs them on the core schema, compiled at boot.
// The untyped seams of sofa-api 0.18 (`__routes`, an errorHandler that returns a plain object) are used only here.
import { getDirective, mapSchema, MapperKind } from '@graphql-tools/utils';
import { GraphQLObjectType, Kind, visit, type DocumentNode, type FieldNode, type GraphQLFieldConfigArgumentMap, type GraphQLSchema, type OperationDefinitionNode } from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import { useSofa } from 'sofa-api';
import type { Context } from '../core/context';
import type { Operation, OperationTable } from '../core/operations';

/** Runs one operation: resolves to the JSON text of the answer, throws what the resolver threw. */
export type Handler = (ctx: Context, variables: Record<string, unknown>) => Promise<string>;

interface Call {
  /** null while warming up: the document is compiled, nothing runs. */
  ctx: Context | null;
  variables: Record<string, unknown>;
}

interface SofaRoute {
  method: string;
  path: string;
  handler(request: object, context: { call: Call }): Promise<Response | { failure: unknown }>;
}

/**
 * One handler per operation id, every document compiled.
 * @throws Error where SOFA generated no route for an operation, or a document that does not compile
 */
export async function buildFacade(schema: GraphQLSchema, table: OperationTable): Promise<Map<string, Handler>> {
  const view = facadeSchema(schema, table);
  const run = executor(schema, table);
  const sofa = useSofa({
    basePath: '/',
    schema: view,
    routes: Object.fromEntries(table.operations.map((operation) => [routeKey(operation), route(operation)])),
    context: (server) => (server as unknown as { call: Call }).call,
    execute: (({ document, contextValue }: { document: DocumentNode; contextValue: Call }) => run(document, contextValue)) as never,
    errorHandler: ((errors: readonly Error[]) => ({ failure: reasonOf(errors[0]) })) as never,
  });
  const routes = (sofa as unknown as { __routes: SofaRoute[] }).__routes;
  const handlers = new Map(table.operations.map((operation) => [operation.id, handlerOf(operation, routes)]));
  for (const handler of handlers.values()) await handler(null, {});
  return handlers as Map<string, Handler>;
}

/** The schema that SOFA sees: bound fields only, one per binding, relations left out. */
export function facadeSchema(schema: GraphQLSchema, table: OperationTable): GraphQLSchema {
  return mapSchema(schema, {
    [MapperKind.OBJECT_FIELD]: (config) => (getDirective(schema, config, 'graphqlOnly') ? null : undefined),
    [MapperKind.ROOT_OBJECT]: (type) => {
      const config = type.toConfig();
      const bound = table.operations.filter((operation) => (operation.field.kind === 'query') === (type.name === schema.getQueryType()?.name));
      const fields = bound.map((operation) => {
        const field = config.fields[operation.field.name] as (typeof config.fields)[string];
        return [operation.key, { ...field, args: argumentsOf(operation, field.args ?? {}) }] as const;
      });
      return new GraphQLObjectType({ ...config, fields: Object.fromEntries(fields) });
    },
  });
}

function argumentsOf(operation: Operation, args: GraphQLFieldConfigArgumentMap): GraphQLFieldConfigArgumentMap {
  const names = [...operation.params.map((param) => param.argument), ...operation.query.map((argument) => argument.name)];
  if (operation.field.body) names.push(operation.field.body.argument);
  return Object.fromEntries(names.map((name) => [name, args[name] as GraphQLFieldConfigArgumentMap[string]]));
}

const routeKey = (operation: Operation): string => `${operation.field.kind === 'query' ? 'Query' : 'Mutation'}.${operation.key}`;

// SOFA finds the path's variables by the names of arguments; our own router keeps the public names.
function route(operation: Operation): { method: Operation['method']; path: string; responseStatus: number } {
  let index = 0;
  const path = operation.path.replace(/\{\w+\}/g, () => `:${operation.params[index++]?.argument}`);
  return { method: operation.method, path, responseStatus: 200 };
}

function handlerOf(operation: Operation, routes: SofaRoute[]): (ctx: Context | null, variables: Record<string, unknown>) => Promise<string> {
  const { method, path } = route(operation);
  const found = routes.find((candidate) => candidate.method === method && candidate.path === path);
  if (!found) throw new Error(`rest: SOFA generated no route for ${operation.id} (${method} ${path})`);
  return async (ctx, variables) => {
    const answer = await found.handler({ url: '', body: null, params: {} }, { call: { ctx, variables } });
    if ('failure' in answer) throw answer.failure;
    return answer.text();
  };
}

function reasonOf(error: (Error & { originalError?: unknown }) | undefined): unknown {
  return error?.originalError ?? error;
}

type Execute = (document: DocumentNode, call: Call) => unknown;

// SOFA hands a document out only when its handler runs, so buildFacade runs each once without a context.
function executor(schema: GraphQLSchema, table: OperationTable): Execute {
  const fieldOf = new Map(table.operations.map((operation) => [operation.key, operation.field.name]));
  const compiled = new WeakMap<DocumentNode, ReturnType<typeof compile>>();
  return (document, { ctx, variables }) => {
    let query = compiled.get(document);
    if (!query) compiled.set(document, (query = compile(schema, onCore(document, fieldOf))));
    return ctx ? query(undefined, ctx, variables) : { data: { [rootOf(document)]: null } };
  };
}

const rootOf = (document: DocumentNode): string => ((document.definitions[0] as OperationDefinitionNode).selectionSet.selections[0] as FieldNode).name.value;

function compile(schema: GraphQLSchema, document: DocumentNode) {
  const query = compileQuery(schema, document);
  if (!isCompiledQuery(query)) throw new Error(`rest: ${JSON.stringify(query.errors)}`);
  return query.query;
}

/** Renames the root field of a further binding: `listVolumes__2` runs `listVolumes` of the core schema. */
function onCore(document: DocumentNode, fieldOf: Map<string, string>): DocumentNode {
  return visit(document, {
    Field(node: FieldNode) {
      const name = fieldOf.get(node.name.value);
      if (!name || name === node.name.value) return undefined;
      return { ...node, name: { kind: Kind.NAME, value: name }, alias: { kind: Kind.NAME, value: node.name.value } };
    },
  });
}
