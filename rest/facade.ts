// The REST operations as SOFA generates them: an operation becomes a facade schema with one root field and no
// relations, SOFA writes its document, graphql-jit compiles it on the core schema. All of it is done when the operation
// is first called: for all at once the start would wait half a second. SOFA's own handler would read the variables from
// the request once more, and put the answer into a Response only for us to take it out again.
// The untyped seams of sofa-api 0.18 (`__routes`, `execute`) are used only here.
import { createRequire } from 'node:module';
import {
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  Kind,
  isListType,
  isNonNullType,
  isObjectType,
  visit,
  type DocumentNode,
  type FieldNode,
  type GraphQLArgument,
  type GraphQLArgumentConfig,
  type GraphQLField,
  type GraphQLFieldConfigArgumentMap,
  type GraphQLFieldConfigMap,
  type GraphQLOutputType,
} from 'graphql';
import { compileQuery, isCompiledQuery, type CompiledQuery } from 'graphql-jit';
import type * as OfSofa from 'sofa-api';
import { hasDirective } from '../contract/directives';
import type { Context } from '../core/context';
import { memoize } from '../core/memoize';
import type { Operation, OperationTable } from '../contract/operations';

const load = createRequire(__filename);

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

/** One handler per operation id. A contract test compiles all of them. */
export function buildFacade(schema: GraphQLSchema, table: OperationTable): Map<string, Handler> {
  return new Map(table.operations.map((operation) => [operation.id, handlerOf(schema, operation)]));
}

/** The context of a call of SOFA's handler: where its document is left. */
interface Shown {
  document?: DocumentNode;
}

/**
 * SOFA shows a document only when its handler runs.
 * @throws Error where SOFA generated no route for the operation
 */
async function documentOf(schema: GraphQLSchema, operation: Operation): Promise<DocumentNode> {
  // 330 modules, which a start need not wait for.
  const { useSofa } = load('sofa-api') as typeof OfSofa;
  const sofa = useSofa({
    basePath: '/',
    schema: facadeSchema(schema, [operation]),
    routes: { [routeKey(operation)]: route(operation) },
    execute: (({ document, contextValue }: { document: DocumentNode; contextValue: Shown }) => {
      contextValue.document = document;
      return { errors: [] };
    }) as never,
    errorHandler: ((errors: readonly Error[]) => rethrow(errors[0])) as never,
  });
  const { __routes: routes } = sofa as unknown as { __routes: SofaRoute[] };
  const shown: Shown = {};
  await routeOf(operation, routes).handler({ url: '', body: null, params: {} }, shown);
  return shown.document as DocumentNode;
}

function rethrow(error: Error | undefined): void {
  if (error) throw error;
}

/** The schema that SOFA sees: one root field per given operation, relations left out. */
export function facadeSchema(schema: GraphQLSchema, operations: readonly Operation[]): GraphQLSchema {
  const withoutRelations = relationRemover();
  const rootOf = (name: string, kind: Operation['field']['kind']): GraphQLObjectType => {
    const rootFields = (kind === 'query' ? schema.getQueryType() : schema.getMutationType())?.getFields() ?? {};
    const bound = operations.filter(({ field }) => field.kind === kind);
    const fields = bound.map((operation) => {
      const { type, args, ...field } = rootFields[operation.field.name] as GraphQLField<unknown, unknown>;
      return [operation.key, { ...field, type: withoutRelations(type), args: argumentsOf(operation, args) }];
    });
    return new GraphQLObjectType({ name, fields: Object.fromEntries(fields) });
  };
  return new GraphQLSchema({ query: rootOf('Query', 'query'), mutation: rootOf('Mutation', 'mutation') });
}

function relationRemover(): (type: GraphQLOutputType) => GraphQLOutputType {
  const known = new Map<GraphQLObjectType, GraphQLObjectType>();
  const shown = (type: GraphQLOutputType): GraphQLOutputType => {
    if (isNonNullType(type)) return new GraphQLNonNull(shown(type.ofType) as GraphQLList<GraphQLOutputType>);
    if (isListType(type)) return new GraphQLList(shown(type.ofType));
    if (!isObjectType(type)) return type;
    const made = known.get(type) ?? new GraphQLObjectType({ ...type.toConfig(), fields: () => ownFields(type) });
    known.set(type, made);
    return made;
  };
  const ownFields = (type: GraphQLObjectType): GraphQLFieldConfigMap<unknown, unknown> =>
    Object.fromEntries(
      Object.entries(type.toConfig().fields)
        .filter(([, field]) => !hasDirective(field, 'graphqlOnly'))
        .map(([name, field]) => [name, { ...field, type: shown(field.type) }]),
    );
  return shown;
}

function argumentsOf(operation: Operation, args: readonly GraphQLArgument[]): GraphQLFieldConfigArgumentMap {
  const names = [
    ...operation.params.map((param) => param.argument),
    ...operation.query.map((argument) => argument.name),
  ];
  if (operation.field.body) names.push(operation.field.body.argument);
  const known = new Map(args.map(({ name, ...argument }) => [name, argument]));
  return Object.fromEntries(names.map((name) => [name, known.get(name) as GraphQLArgumentConfig]));
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

function handlerOf(schema: GraphQLSchema, operation: Operation): Handler {
  const compile = memoize(async () => compileOperation(schema, operation, await documentOf(schema, operation)));
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
