// SOFA as it comes: useSofa on Express with all our routes, queries executed with graphql-js, on the same resolvers.
// Settings as the service; prints its port.
import { createServer, type IncomingMessage } from 'node:http';
import express from 'express';
import { useSofa } from 'sofa-api';
import { loadConfig } from '../../../core/config';
import type { Context } from '../../../core/context';
import { mintRequestId } from '../../../core/ids';
import type { Operation } from '../../../contract/operations';
import { buildCore } from '../../../resolvers';
import { facadeSchema } from '../../../rest/facade';
import { authenticate } from '../../../server/platform/authenticate';
import { requestContext } from '../../../server/platform/context';
import { openPlatform, type Platform } from '../../../server/platform/platform';
import { announce, usage } from './tables';

async function main(): Promise<void> {
  const platform = await openPlatform(loadConfig(process.env));
  const { graphqlSchema: schema, table } = buildCore();
  const app = express();
  app.get('/usage', (_, response) => void response.json(usage()));
  app.use(
    useSofa({
      basePath: '/',
      schema: facadeSchema(schema, table.operations),
      routes: Object.fromEntries(
        table.operations.map((operation) => [
          `${operation.field.kind === 'query' ? 'Query' : 'Mutation'}.${operation.key}`,
          route(operation),
        ]),
      ),
      context: (({ req }: { req: IncomingMessage }) => context(platform, req)) as never,
    }) as unknown as express.RequestHandler,
  );
  announce(createServer(app));
}

// SOFA finds the path's variables by the names of arguments.
function route({ method, path, params, status }: Operation): {
  method: Operation['method'];
  path: string;
  responseStatus: number;
} {
  let index = 0;
  return { method, path: path.replace(/\{\w+\}/g, () => `:${params[index++]?.argument}`), responseStatus: status };
}

/** On this face the resolvers check limit, scope, project and arguments. */
async function context(platform: Platform, request: IncomingMessage): Promise<Context> {
  const ctx = requestContext(platform, request, mintRequestId());
  ctx.identity = await authenticate(platform, request.headers.authorization, ctx.address);
  return ctx;
}

process.once('SIGTERM', () => process.exit(0));
void main();
