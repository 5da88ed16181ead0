// The reference: what a hand-written server costs that does the same work on the same tables and checks nothing.
// Plain node http and pg with named statements; the key is looked up in a Map.
//   node bench/bare.js <address of the database> <key>     prints its port
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import pg from 'pg';
import { mintId } from '../core/ids';

const [, , url = '', key = ''] = process.argv;
const INT8 = 20;
pg.types.setTypeParser(INT8, Number);
const pool = new pg.Pool({ connectionString: url, max: 10 });
const keys = new Map([[`Bearer ${key}`, 'key_1']]);

const COLUMNS = 'id, project_id, name, size_gb, region, application_id, mount_path, status, status_reason, enforcement, used_bytes, over_quota, created_at, updated_at';
const GET = `select ${COLUMNS} from volumes where id = $1 and project_id = $2 and deleted_at is null`;
const LIST = `select ${COLUMNS} from volumes where project_id = $1 and deleted_at is null order by id desc limit $2`;
const INSERT = `insert into volumes (id, project_id, name, size_gb, region, created_at, updated_at) values ($1, $2, $3, $4, $5, now(), now()) returning ${COLUMNS}`;
const AUDIT = `insert into activity (id, project_id, account_id, action, actor, actor_id, key_id, resource_type, resource_id, resource_name, changed_fields, request_id, created_at)
  values ($1, $2, 'acc', 'volume.created', '{}', 'usr', $3, 'volume', $4, $5, '{name,size_gb}', 'req', now())`;

const server = createServer((request, response) => {
  const { url: target = '/', method } = request;
  if (target === '/usage') return send(response, 200, { cpu: process.cpuUsage(), rss: process.memoryUsage.rss() });
  const keyId = keys.get(request.headers.authorization ?? '');
  if (!keyId) return send(response, 401, {});
  const project = String(request.headers['x-svc-project']);
  const answer = method === 'POST' ? create(request, project, keyId) : target.startsWith('/v2/volumes?') ? list(target, project) : get(target.slice('/v2/volumes/'.length), project);
  answer.then((body) => send(response, method === 'POST' ? 201 : 200, body), (error: Error) => send(response, 500, { error: error.message }));
});
server.keepAliveTimeout = 65_000;
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as { port: number }).port}\n`));

function send(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}

async function get(id: string, project: string): Promise<object> {
  const { rows } = await pool.query<object>({ name: 'get', text: GET, values: [id, project] });
  return rows[0] as object;
}

async function list(target: string, project: string): Promise<object> {
  const limit = Number(new URLSearchParams(target.slice(target.indexOf('?'))).get('limit'));
  const { rows } = await pool.query<{ id: string }>({ name: 'list', text: LIST, values: [project, limit + 1] });
  const next_cursor = rows.length > limit ? (rows[limit - 1]?.id ?? null) : null;
  return { data: rows.slice(0, limit), next_cursor };
}

async function create(request: IncomingMessage, project: string, keyId: string): Promise<object> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { name, size_gb } = JSON.parse(Buffer.concat(chunks).toString()) as { name: string; size_gb: number };
  const client = await pool.connect();
  try {
    await client.query('begin');
    const id = mintId('vol');
    const { rows } = await client.query<object>({ name: 'insert', text: INSERT, values: [id, project, name, size_gb, 'local'] });
    await client.query({ name: 'audit', text: AUDIT, values: [mintId('act'), project, keyId, id, name] });
    await client.query({ name: 'notify', text: `select pg_notify('due', $1)`, values: ['volumes'] });
    await client.query('commit');
    return rows[0] as object;
  } finally {
    client.release();
  }
}
