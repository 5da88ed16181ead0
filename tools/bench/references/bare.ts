// The reference: what a hand-written server costs that does the same work on the same tables and checks nothing.
// Plain node http and pg with named statements; the key is looked up in a Map.
//   node tools/bench/references/bare.js <address of the database> <key>     prints its port
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { announce, insertVolume, getVolume, listVolumes, openPool, renameVolume, setVariable, usage } from './tables';

const [, , url = '', key = ''] = process.argv;
const pool = openPool(url);
const keys = new Map([[`Bearer ${key}`, 'key_1']]);

type Body = Record<string, unknown>;

const server = createServer((request, response) => {
  if (request.url === '/usage') return send(response, 200, usage());
  if (!keys.get(request.headers.authorization ?? '')) return send(response, 401, {});
  const status = request.method === 'POST' ? 201 : 200;
  answer(request).then(
    (body) => send(response, body ? status : 404, body ?? {}),
    (error: Error) => send(response, 500, { error: error.message }),
  );
});
announce(server);

async function answer(request: IncomingMessage): Promise<object | undefined> {
  const { url: target = '/', method } = request;
  const project = String(request.headers['x-svc-project']);
  if (method === 'POST')
    return insertVolume(
      pool,
      project,
      (await readJson(request)) as { name: string; size_gb: number },
      target.endsWith('?notify') ? 'notify' : 'silent',
    );
  if (method === 'PATCH') return renameVolume(pool, project, lastOf(target), String((await readJson(request)).name));
  if (method === 'PUT')
    return setVariable(
      pool,
      project,
      target.split('/')[3] as string,
      lastOf(target),
      String((await readJson(request)).value),
    );
  const query = target.indexOf('?');
  if (query < 0) return getVolume(pool, lastOf(target), project);
  return listVolumes(pool, project, Number(new URLSearchParams(target.slice(query)).get('limit')));
}

const lastOf = (target: string): string => target.slice(target.lastIndexOf('/') + 1);

function send(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}

async function readJson(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString()) as Body;
}
