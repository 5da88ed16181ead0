// What the autoscaler reads and writes: the process types that it is responsible for, and a new number of instances.
import type { Sql } from '../../core/context';
import type { Session } from '../../db/control_database';
import { named } from '../../db/statement';
import { recordEvent } from '../projects/activity';
import { HANDLE } from './sample';
import { wakeApplication } from './application/wake';
import { Process } from '../processes/process';
import type { Autoscaling } from '../processes/process/scale';

export interface AutoscaledProcess {
  id: string;
  project_id: string;
  application_id: string;
  type: string;
  version: number;
  instances: number;
  autoscaling: Autoscaling;
  /** What one instance may take. */
  cpus: number | null;
  memory_mb: number | null;
}

// Only applications in a steady state: during a deployment, a start or a scale, measurements are misleading. The limits
// of an instance are those of its release.
const AUTOSCALED = named(`select p.id, p.project_id, p.application_id, p.type, p.version, p.instances, p.autoscaling,
    (r.processes -> p.type ->> 'cpus')::float8 as cpus, (r.processes -> p.type ->> 'memory_mb')::float8 as memory_mb
  from processes p
  join applications a on a.id = p.application_id and a.status = 'running' and a.deleted_at is null
  join releases r on r.id = p.release_id
  where p.autoscaling is not null and p.status = 'running' and p.instances > 0
  order by p.id`);

const INSTANCES = named(`select id, process_id, ${HANDLE} as handle from instances
  where application_id = any($1) and process_id = any($2) and preview_id is null
    and status = 'running' and (handle is not null or pod_uid is not null) and deleted_at is null`);
const LOCK = named('select id from applications where id = $1 and deleted_at is null for no key update');
// A request that changed the process type meanwhile has the last word.
const SCALE = named(`update processes set instances = $3, status = 'scaling', version = version + 1,
    updated_at = greatest(now(), updated_at)
  where id = $1 and version = $2 and autoscaling is not null returning id`);

/** Process types that run as they should, and scale by themselves. */
export function autoscaledProcesses(sql: Sql): Promise<AutoscaledProcess[]> {
  return sql.query<AutoscaledProcess>(AUTOSCALED, []);
}

export interface AutoscaledInstance<Handle> {
  id: string;
  process_id: string;
  handle: Handle;
}

export function autoscaledInstances<Handle>(
  sql: Sql,
  processes: readonly { id: string; application_id: string }[],
): Promise<AutoscaledInstance<Handle>[]> {
  return sql.query<AutoscaledInstance<Handle>>(INSTANCES, [
    processes.map(({ application_id }) => application_id),
    processes.map(({ id }) => id),
  ]);
}

/** Whether it was changed; the application is locked first, as requests do. */
export function autoscaleProcess(sql: Session, process: AutoscaledProcess, instances: number): Promise<boolean> {
  return sql.transaction(async (session) => {
    const [held] = await session.query(LOCK, [process.application_id]);
    const [written] = held ? await session.query(SCALE, [process.id, process.version, instances]) : [];
    if (!written) return false;
    await wakeApplication(session, process.application_id);
    const event = { id: process.id, project_id: process.project_id, name: process.type };
    await recordEvent(session, Process.table, event, 'autoscaled');
    return true;
  });
}
