// SOFA as it comes: useSofa on Express, queries executed with graphql-js, on the same resolvers. Settings as the service;
// prints its port. With the word `designed` it has the routes of the whole design, in its order: those that are not built yet
// answer nothing, but SOFA looks at them like at the others on its way to the one that was asked for.
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import path from 'node:path';
import express from 'express';
import { GraphQLID, GraphQLObjectType, GraphQLSchema, GraphQLString, type GraphQLFieldConfig } from 'graphql';
import { useSofa } from 'sofa-api';
import { loadConfig } from '../../core/config';
import type { Context } from '../../core/context';
import { mintRequestId } from '../../core/ids';
import type { Method, Operation, OperationTable } from '../../core/operations';
import { buildCore } from '../../resolvers';
import { bearerToken } from '../../rest/bearer';
import { facadeSchema } from '../../rest/facade';
import { authenticate } from '../../server/authenticate';
import { requestContext } from '../../server/context';
import { openPlatform, type Platform } from '../../server/platform';
import { announce, usage } from './tables';

interface Route {
  method: Method;
  path: string;
  responseStatus: number;
}

interface Face {
  schema: GraphQLSchema;
  /** By `Query.<field>` and `Mutation.<field>`. */
  routes: Record<string, Route>;
}

async function main(): Promise<void> {
  const platform = await openPlatform(loadConfig(process.env));
  const { schema, table } = buildCore();
  const built = { schema: facadeSchema(schema, table), routes: Object.fromEntries(table.operations.map((operation) => [keyOf(operation), routeOf(operation)])) };
  const face = process.argv[2] === 'designed' ? whole(built, table) : built;
  const app = express();
  app.get('/usage', (_, response) => void response.json(usage()));
  app.use(
    useSofa({
      ...{ basePath: '/', schema: face.schema, routes: face.routes },
      context: (({ req }: { req: IncomingMessage }) => context(platform, req)) as never,
    }) as unknown as express.RequestHandler,
  );
  announce(createServer(app));
}

const keyOf = ({ field, key }: Operation): string => `${field.kind === 'query' ? 'Query' : 'Mutation'}.${key}`;

// SOFA finds the path's variables by the names of arguments.
function routeOf({ method, path, params, status }: Operation): Route {
  let index = 0;
  return { method, path: path.replace(/\{\w+\}/g, () => `:${params[index++]?.argument}`), responseStatus: status };
}

interface Designed {
  id: string;
  root: 'Query' | 'Mutation';
  method: Method;
  path: string;
}

/** The face with a field and a route for each operation of the design. */
function whole({ schema, routes }: Face, table: OperationTable): Face {
  const all = design();
  const keys = new Map(table.operations.map((operation) => [operation.id, operation.key]));
  const root = (type: GraphQLObjectType): GraphQLObjectType => {
    const config = type.toConfig();
    const names = all.filter((one) => one.root === type.name);
    return new GraphQLObjectType({ ...config, fields: Object.fromEntries(names.map((one) => [keys.get(one.id) ?? one.id, config.fields[keys.get(one.id) ?? ''] ?? fieldOf(one)])) });
  };
  const config = schema.toConfig();
  const unbuilt = all.filter(({ id }) => !keys.has(id)).map((one) => [`${one.root}.${one.id}`, { method: one.method, path: one.path.replace(/\{(\w+)\}/g, ':$1'), responseStatus: 200 }]);
  const roots = { query: root(schema.getQueryType() as GraphQLObjectType), mutation: root(schema.getMutationType() as GraphQLObjectType) };
  return { schema: new GraphQLSchema({ ...config, ...roots, types: config.types.filter(({ name }) => name !== 'Query' && name !== 'Mutation') }), routes: { ...routes, ...Object.fromEntries(unbuilt) } };
}

function design(): Designed[] {
  const [, ...lines] = readFileSync(path.resolve(__dirname, '../../../test/golden/operations.tsv'), 'utf8').trim().split('\n');
  return lines.map((line) => {
    const [, id, kind, method, path] = line.split('\t') as [string, string, string, Method, string];
    return { id, root: kind === 'query' ? 'Query' : 'Mutation', method, path };
  });
}

function fieldOf({ path }: Designed): GraphQLFieldConfig<unknown, unknown> {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
  return { type: GraphQLString, args: Object.fromEntries(names.map((name) => [name, { type: GraphQLID }])) };
}

/** On this face the resolvers check limit, scope, project and arguments. */
async function context(platform: Platform, request: IncomingMessage): Promise<Context> {
  const ctx = requestContext(platform, 'graphql', request, mintRequestId());
  ctx.identity = await authenticate(platform, bearerToken(request.headers.authorization), ctx.address);
  return ctx;
}

process.once('SIGTERM', () => process.exit(0));
void main();
