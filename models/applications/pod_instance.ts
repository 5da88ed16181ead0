// Rows of instances that follow the pods of a cluster.
import type { Sql } from '../../core/context';
import { derivedId, timeOfId } from '../../core/ids';
import type { LogLevel } from '../../core/log/log_line';
import type { ControlDatabase } from '../../db/control_database';
import { named } from '../../db/statement';
import type { InstanceStatus } from '../../schema/types';
import { appendLogLines } from './log_line';
import { recordEvents } from '../projects/activity';

/** A pod, as far as its row shows it. */
interface PodInstance {
  uid: string;
  workload_id: string;
  /** Of the place that it is in: without effect where its workload is of another. */
  project_id: string;
  status: InstanceStatus;
  reason: string | null;
  fault: 'health' | 'start' | null;
  restarts: number;
  /** RFC 3339. */
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  location: { address: string } | null;
  port: number | null;
}

const EXITS_WITHIN = `interval '10 minutes'`;
/** The ends of its program within the last minutes, with the one that is new. */
const EXITS = `case when excluded.restart_count > i.restart_count and $11::timestamptz is not null then
    (select coalesce(jsonb_agg(at order by at), '[]') from jsonb_array_elements_text(i.exits || to_jsonb($11::text)) at
      where at::timestamptz > now() - ${EXITS_WITHIN}) else i.exits end`;
// A row that is to stop stays so until its pod has gone.
const STATUS = `case when i.status = 'stopping' then i.status else excluded.status end`;
const SAVE = named(`insert into instances as i (id, project_id, application_id, preview_id, process_id, process_type,
    deployment_id, release_id, workload_id, pod_uid, status, status_reason, restart_count, started_at, port, location,
    observed, created_at, updated_at, next_at)
  select $1, w.project_id, w.application_id, w.preview_id, w.process_id, w.process_type, w.deployment_id, w.release_id,
    w.id, $3, $4, $5, $6::int, $7::timestamptz, $8::int, $9::jsonb, $10::jsonb, $12::timestamptz, $12::timestamptz,
    null
  from workloads w where w.id = $2 and w.project_id = $13
  on conflict (pod_uid) where pod_uid is not null do update set status = ${STATUS},
    status_reason = excluded.status_reason, restart_count = excluded.restart_count, started_at = excluded.started_at,
    port = excluded.port, location = excluded.location, observed = excluded.observed, exits = ${EXITS},
    observed_generation = i.observed_generation + 1
  where (i.status, i.status_reason, i.restart_count, i.started_at, i.port, i.location, i.observed) is distinct from
    (${STATUS}, excluded.status_reason, excluded.restart_count, excluded.started_at, excluded.port, excluded.location,
      excluded.observed)
  returning *, (select status from instances old where old.id = i.id) as before,
    (select restart_count from instances old where old.id = i.id) as restarts_before`);

interface SavedPod {
  id: string;
  project_id: string;
  application_id: string;
  preview_id: string | null;
  deployment_id: string;
  process_type: string;
  before: InstanceStatus | null;
  status: InstanceStatus;
  status_reason: string | null;
  restarts_before: number | null;
  restart_count: number;
}

/** Creates or updates the row of a pod. Without effect for a workload of which the project has no row. */
export async function savePodInstance(database: ControlDatabase, pod: PodInstance): Promise<void> {
  // Ingresses that have not seen the row yet know it by the same one.
  const id = derivedId('ins', pod.created_at, pod.uid);
  await database.transaction(async (session) => {
    const rows = await session.query<SavedPod>(SAVE, [
      ...[id, pod.workload_id, pod.uid, pod.status, pod.reason, pod.restarts, pod.started_at, pod.port],
      ...[
        json(pod.location),
        json(pod.fault && { fault: pod.fault }),
        pod.ended_at,
        timeOfId(id).toISOString(),
        pod.project_id,
      ],
    ]);
    for (const row of rows) {
      if (row.before !== row.status) await recordEvents(session, 'instances', [row.id], row.status);
      await logChange(session, row);
    }
  });
}

/** The lines of an instance on the host, in the log of the application: that it runs, and why its program ended. */
async function logChange(sql: Sql, row: SavedPod): Promise<void> {
  const { before, status, status_reason, restarts_before, restart_count } = row;
  const again = restart_count > 0 ? ' again' : '';
  const hasEnded = restart_count > (restarts_before ?? 0) || (status === 'crashed' && before !== 'crashed');
  if (hasEnded && status_reason !== null) await logLine(sql, row, status_reason, 'error');
  if (status === 'running' && before !== 'running') await logLine(sql, row, `The instance is running${again}.`);
}

function logLine(sql: Sql, row: SavedPod, message: string, level: LogLevel = 'info'): Promise<void> {
  const { id: instance_id, project_id, application_id, preview_id, deployment_id, process_type } = row;
  const place = { project_id, application_id, preview_id, deployment_id, instance_id, process_type };
  return appendLogLines(sql, [{ ...place, source: 'system', level, message: `${process_type}: ${message}` }]);
}

const LEAVE = named(
  `update instances set status = 'stopping' where pod_uid = $1 and status <> 'stopping' returning id`,
);

/** The pod was removed. Its row stays until its last log lines are stored, and gets no requests. */
export async function noteLeavingPod(database: ControlDatabase, uid: string): Promise<void> {
  await database.transaction(async (session) => {
    const rows = await session.query<{ id: string }>(LEAVE, [uid]);
    for (const { id } of rows) await recordEvents(session, 'instances', [id], 'stopping');
  });
}

const REMOVE = named('delete from instances where pod_uid = any($1)');

export async function removePodInstances(sql: Sql, uids: readonly string[]): Promise<void> {
  if (uids.length) await sql.query(REMOVE, [uids]);
}

const KNOWN = named('select pod_uid from instances where pod_uid is not null');

/** Pods that have a row. */
export async function knownPods(sql: Sql): Promise<string[]> {
  return (await sql.query<{ pod_uid: string }>(KNOWN, [])).map(({ pod_uid }) => pod_uid);
}

function json(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value);
}
