// Queries and updates of the sampler: running instances and their usage.
import type { Sql } from '../../core/context';
import { named } from '../../db/statement';

/** A running instance with the handle of its unit. */
export interface SampledInstance<Handle> {
  id: string;
  project_id: string;
  application_id: string;
  preview_id: string | null;
  process_id: string;
  handle: Handle;
}

/** Of a pod: a handle of the same shape, which is another one when its program starts anew. */
export const HANDLE = `coalesce(handle, jsonb_build_object('unit_id', 'pod.' || pod_uid, 'pid', 0,
  'start_time', started_at::text))`;
const RUNNING = named(
  `select id, project_id, application_id, preview_id, process_id, ${HANDLE} as handle from instances
    where status = 'running' and (handle is not null or pod_uid is not null) and deleted_at is null`,
);

export function runningInstances<Handle>(sql: Sql): Promise<SampledInstance<Handle>[]> {
  return sql.query<SampledInstance<Handle>>(RUNNING, []);
}

/** Process types of applications that have been deployed, with how many instances run. Previews are left out. */
export interface ProcessCount {
  id: string;
  project_id: string;
  application_id: string;
  running: number;
}

const COUNTS = named(`select p.id, p.project_id, p.application_id, count(i.id) as running from processes p
  left join instances i on i.application_id = p.application_id and i.process_id = p.id and i.preview_id is null
    and i.status = 'running' and i.deleted_at is null
  where p.release_id is not null group by p.id`);

export function countInstances(sql: Sql): Promise<ProcessCount[]> {
  return sql.query<ProcessCount>(COUNTS, []);
}

interface InstanceUsage {
  id: string;
  cpu_percent: number | null;
  memory_mb: number;
}

// Rows that a job has locked are left for the next time. Not a write of desired fields: neither version nor updated_at.
const STORE = named(`with sampled as (select * from unnest($1::text[], $2::float8[], $3::int[]) as s (id, cpu_percent,
    memory_mb)),
  free as (select id from instances where id = any($1) order by id for update skip locked)
  update instances i set cpu_percent = s.cpu_percent, memory_mb = s.memory_mb from sampled s join free using (id)
    where i.id = s.id`);

/** Shows what instances use, in one statement. */
export async function storeUsage(sql: Sql, usage: readonly InstanceUsage[]): Promise<void> {
  if (!usage.length) return;
  await sql.query(STORE, [
    usage.map(({ id }) => id),
    usage.map(({ cpu_percent }) => cpu_percent),
    usage.map(({ memory_mb }) => memory_mb),
  ]);
}

/** Where the requests of an application are counted: at its process type `web`. */
export interface TrafficPart {
  application_id: string;
  project_id: string;
  process_id: string | null;
}

const PARTS = named(
  `select a.id as application_id, a.project_id, p.id as process_id from applications a
    left join processes p on p.application_id = a.id and p.type = 'web' where a.id = any($1)`,
);

export async function trafficParts(sql: Sql, applicationIds: readonly string[]): Promise<Map<string, TrafficPart>> {
  if (!applicationIds.length) return new Map();
  const rows = await sql.query<TrafficPart>(PARTS, [applicationIds]);
  return new Map(rows.map((row) => [row.application_id, row]));
}
