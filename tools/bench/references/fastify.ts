// Fastify 5 and pg as one would write it by hand: a bearer check, answers printed by functions made from their schemas.
//   node tools/bench/references/fastify.js <address of the database> <key>     prints its port
import type { Server } from 'node:http';
import { loadPackage } from './packages';
import { announce, getVolume, listVolumes, openPool, usage } from './tables';

interface FastifyRequest {
  headers: Record<string, string | undefined>;
  params: { id: string };
  query: { limit: number };
}

interface Reply {
  code(status: number): Reply;
  send(body: object): Reply;
}

interface App {
  server: Server;
  get(path: string, options: object, handler: (request: FastifyRequest, reply: Reply) => Promise<unknown>): void;
  ready(): Promise<unknown>;
}

const [, , url = '', key = ''] = process.argv;
const pool = openPool(url);
const keys = new Map([[`Bearer ${key}`, 'key_1']]);
const app = (loadPackage('fastify') as (options: object) => App)({ logger: false });

const text = { type: 'string' };
const optional = { type: ['string', 'null'] };
const time = { type: 'string', format: 'date-time' };
const volume = {
  type: 'object',
  properties: {
    ...{
      id: text,
      project_id: text,
      name: text,
      size_gb: { type: 'integer' },
      region: text,
      application_id: optional,
      mount_path: optional,
    },
    ...{
      status: text,
      status_reason: optional,
      enforcement: optional,
      used_bytes: { type: ['integer', 'null'] },
      over_quota: { type: 'boolean' },
    },
    ...{ created_at: time, updated_at: time },
  },
};
const page = { type: 'object', properties: { data: { type: 'array', items: volume }, next_cursor: optional } };
const refusal = { type: 'object', properties: { code: text } };

const onRequest = async (request: FastifyRequest, reply: Reply): Promise<unknown> =>
  keys.has(request.headers.authorization ?? '') ? undefined : reply.code(401).send({ code: 'token_invalid' });
const projectOf = (request: FastifyRequest): string => String(request.headers['x-svc-project']);

app.get('/usage', {}, async () => usage());
app.get(
  '/v2/volumes/:id',
  {
    onRequest,
    schema: { params: { type: 'object', properties: { id: text } }, response: { 200: volume, '4xx': refusal } },
  },
  async (request, reply) => {
    return (
      (await getVolume(pool, request.params.id, projectOf(request))) ?? reply.code(404).send({ code: 'not_found' })
    );
  },
);
const query = { type: 'object', properties: { limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 } } };
app.get(
  '/v2/volumes',
  { onRequest, schema: { querystring: query, response: { 200: page, '4xx': refusal } } },
  (request) => listVolumes(pool, projectOf(request), request.query.limit),
);

void app.ready().then(() => announce(app.server));
