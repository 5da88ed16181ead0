// Common parts of the hand-written servers: the connection, the statements, and the report of port and CPU usage to the
// benchmark.
import type { Server } from 'node:http';
import pg from 'pg';
import { mintId } from '../../../core/ids';

const INT8 = 20;
pg.types.setTypeParser(INT8, Number);

const VOLUME =
  'id, project_id, name, size_gb, region, application_id, mount_path, status, status_reason, enforcement, ' +
  'used_bytes, over_quota, created_at, updated_at';
const VARIABLE = 'application_id, key, value, value_hash, available_at, managed_by, created_at, updated_at';
const GET = `select ${VOLUME} from volumes where id = $1 and project_id = $2 and deleted_at is null`;
const LIST = `select ${VOLUME} from volumes where project_id = $1 and deleted_at is null order by id desc limit $2`;

export interface Page {
  data: object[];
  next_cursor: string | null;
}

/** As many connections as the service has by default. */
export function openPool(url: string): pg.Pool {
  return new pg.Pool({ connectionString: url, max: 10 });
}

export async function getVolume(pool: pg.Pool, id: string, project: string): Promise<object | undefined> {
  const { rows } = await pool.query<object>({ name: 'get', text: GET, values: [id, project] });
  return rows[0];
}

export async function listVolumes(pool: pg.Pool, project: string, limit: number): Promise<Page> {
  const { rows } = await pool.query<{ id: string }>({ name: 'list', text: LIST, values: [project, limit + 1] });
  const next_cursor = rows.length > limit ? (rows[limit - 1]?.id ?? null) : null;
  return { data: rows.slice(0, limit), next_cursor };
}

const INSERT = `insert into volumes (id, project_id, name, size_gb, region, created_at, updated_at)
  values ($1, $2, $3, $4, 'local', now(), now()) returning ${VOLUME}`;
const SPAN = `insert into usage_spans (project_id, kind, resource_id, price_id, quantity)
  values ($1, 'volume', $2, 'volume_gb', $3)`;
const ENTRY = `insert into activity (id, project_id, account_id, action, actor, actor_id, key_id, resource_type,
  resource_id, resource_name, changed_fields, request_id, created_at)
  values ($1, $2, 'acc', $3, '{}', 'usr', 'key', $4, $5, $6, $7, 'req', now())`;

/** The three inserts of POST /v2/volumes. @param notify also wakes the loop at the commit */
export function insertVolume(
  pool: pg.Pool,
  project: string,
  input: { name: string; size_gb: number },
  notify: 'notify' | 'silent',
): Promise<object> {
  return transaction(pool, async (client) => {
    const id = mintId('vol');
    const { rows } = await client.query<object>({
      name: 'insert',
      text: INSERT,
      values: [id, project, input.name, input.size_gb],
    });
    await client.query({ name: 'span', text: SPAN, values: [project, id, input.size_gb] });
    await record(client, project, 'volume.created', ['volume', id, input.name], ['name', 'size_gb']);
    if (notify === 'notify') await client.query({ name: 'notify', text: `select pg_notify('due', 'volumes')` });
    return rows[0] as object;
  });
}

const HOLD = 'select * from volumes where id = $1 and project_id = $2 and deleted_at is null for update';
const RENAME = `update volumes set name = $2, version = version + 1, updated_at = greatest(now(), updated_at),
  generation = generation + 1, next_at = now(), attempts = 0, deadline_at = null
  where id = $1 returning ${VOLUME}`;

/** PATCH /v2/volumes/{id} with a name: the row is locked, as for If-Match. */
export function renameVolume(pool: pg.Pool, project: string, id: string, name: string): Promise<object> {
  return transaction(pool, async (client) => {
    await client.query({ name: 'hold', text: HOLD, values: [id, project] });
    const { rows } = await client.query<object>({ name: 'rename', text: RENAME, values: [id, name] });
    await record(client, project, 'volume.updated', ['volume', id, name], ['name']);
    return rows[0] as object;
  });
}

const APPLICATION =
  'select 1 from applications where id = $1 and project_id = $2 and deleted_at is null for no key update';
const VARIABLE_HELD = 'select * from environment_variables where application_id = $1 and key = $2 for update';
const SET = `update environment_variables set value = $2, value_hash = $2, version = version + 1,
  updated_at = greatest(now(), updated_at) where id = $1 returning ${VARIABLE}`;

/** PUT /v2/applications/{id}/env/{key} of a variable that is there. Its value is stored as it came, not sealed. */
export function setVariable(
  pool: pg.Pool,
  project: string,
  application: string,
  key: string,
  value: string,
): Promise<object> {
  return transaction(pool, async (client) => {
    await client.query({ name: 'application', text: APPLICATION, values: [application, project] });
    const { rows: held } = await client.query<{ id: string }>({
      name: 'variable',
      text: VARIABLE_HELD,
      values: [application, key],
    });
    const id = held[0]?.id;
    const { rows } = await client.query<object>({ name: 'set', text: SET, values: [id, value] });
    await record(client, project, 'environment_variable.set', ['environment_variable', id, key], ['value']);
    return rows[0] as object;
  });
}

async function record(
  client: pg.PoolClient,
  project: string,
  action: string,
  resource: unknown[],
  fields: string[],
): Promise<void> {
  await client.query({ name: 'entry', text: ENTRY, values: [mintId('act'), project, action, ...resource, fields] });
}

async function transaction<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    const result = await run(client);
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
}

/** What a reference answers to GET /usage. */
export function usage(): { cpu: NodeJS.CpuUsage; rss: number } {
  return { cpu: process.cpuUsage(), rss: process.memoryUsage.rss() };
}

/** Listens on a free port of the loopback interface, and prints it. */
export function announce(server: Server): void {
  server.keepAliveTimeout = 65_000;
  server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as { port: number }).port}\n`));
}
