// A stack: the instances of an application, or of one of its previews. What should run, what
// runs, and the writes that reconcile them.
import { mintId, timeOfId } from '../../core/ids';
import type { Sql } from '../../core/context';
import type { Session } from '../../db/control_database';
import { changeRows } from '../../db/loop_rows';
import { named } from '../../db/statement';
import { recordEvents } from '../projects/activity';
import type { ApplicationStatus, InstanceStatus, ProcessStatus } from '../../schema/types';

export interface StackKey {
  project_id: string;
  application_id: string;
  /** null = the application itself. */
  preview_id: string | null;
}

/** What should run of one process type. */
export interface DesiredProcess {
  process_id: string;
  type: string;
  /** null before the first deployment, and for types without a command. */
  release_id: string | null;
  deployment_id: string | null;
  /** Decided with the deployment: models/deployments/deployment_work.ts. */
  on_cluster: boolean;
  instances: number;
}

/** A process type of an application as it shows itself. */
export interface ProcessState extends DesiredProcess {
  status: ProcessStatus;
  running_instances: number;
  /** Of the row, whether the type has a command in it or not. */
  target_id: string | null;
}

export interface PresentInstance {
  id: string;
  process_id: string;
  process_type: string;
  release_id: string;
  status: InstanceStatus;
  status_reason: string | null;
  /** How often it has ended in the last minutes. */
  exits: number;
  /** Why it is not to be counted on, where it is not: models/applications/instance_work.ts. */
  observed: { fault?: 'health' | 'start' } | null;
  /** Of a deployment that is not active yet. */
  candidate: boolean;
  /** On a cluster, which starts and stops it. */
  is_pod: boolean;
}

/** A process type of a release in a cluster, with its desired number of instances. */
export interface PresentWorkload {
  id: string;
  process_id: string;
  process_type: string;
  release_id: string;
  instances: number;
  /** Why its instances cannot be created, as a sentence. */
  obstacle: string | null;
  /** Of a deployment that is not active yet. */
  candidate: boolean;
}

/**
 * Observed and desired state in one snapshot: otherwise a version that went into service in between would be missing
 * from the desired state.
 */
export interface ApplicationStack {
  status: ApplicationStatus;
  processes: ProcessState[];
  present: PresentInstance[];
  /** On a cluster only. */
  workloads: PresentWorkload[];
}

export interface PreviewStack {
  wants: DesiredProcess[];
  present: PresentInstance[];
  workloads: PresentWorkload[];
}

const listOf = (query: string): string => `coalesce((select jsonb_agg(to_jsonb(one)) from (${query}) one), '[]')`;

const ON_CLUSTER = 'coalesce(d.on_cluster, false) as on_cluster';
const PROCESSES = `select p.id as process_id, p.type, p.status, p.instances, p.running_instances,
  p.release_id as target_id, r.id as release_id, r.deployment_id, ${ON_CLUSTER}
  from processes p left join releases r on r.id = p.release_id and jsonb_exists(r.processes, p.type)
    left join deployments d on d.id = r.deployment_id`;
const DESIRED = `select p.id as process_id, p.type, p.instances, r.id as release_id, r.deployment_id, ${ON_CLUSTER}
  from releases r join processes p on p.application_id = r.application_id and jsonb_exists(r.processes, p.type)
    left join deployments d on d.id = r.deployment_id`;
const isCandidate = (row: string): string =>
  `coalesce(d.status = 'deploying' and d.deleted_at is null and d.release_id = ${row}.release_id, false) as candidate`;
const PRESENT = `select i.id, i.process_id, i.process_type, i.release_id, i.status, i.status_reason, i.observed,
  jsonb_array_length(i.exits) as exits, i.pod_uid is not null as is_pod, ${isCandidate('i')}
  from instances i left join deployments d on d.id = i.deployment_id`;
const WORKLOADS = `select w.id, w.process_id, w.process_type, w.release_id, w.instances,
  w.observed ->> 'obstacle' as obstacle, ${isCandidate('w')}
  from workloads w left join deployments d on d.id = w.deployment_id`;

const OF_APPLICATION =
  named(`select a.status, ${listOf(`${PROCESSES} where p.application_id = a.id order by p.type`)} as processes,
    ${listOf(`${PRESENT} where i.application_id = a.id and i.preview_id is null order by i.id`)} as present,
    ${listOf(`${WORKLOADS} where w.application_id = a.id and w.preview_id is null and w.deleted_at is null`)}
      as workloads
  from applications a where a.id = $1`);

/** The process types and the instances of an application; null where its row has gone. */
export async function stackOfApplication(sql: Sql, applicationId: string): Promise<ApplicationStack | null> {
  return (await sql.query<ApplicationStack>(OF_APPLICATION, [applicationId]))[0] ?? null;
}

const OF_PREVIEW = named(`select ${listOf(`${DESIRED} where r.id = v.release_id order by p.type`)} as wants,
    ${listOf(`${PRESENT} where i.application_id = v.application_id and i.preview_id = v.id order by i.id`)} as present,
    ${listOf(`${WORKLOADS} where w.application_id = v.application_id and w.preview_id = v.id and w.deleted_at is null`)}
      as workloads
  from previews v where v.id = $1`);

/** One instance of each process type of its release, and what there is; null where its row has gone. */
export async function stackOfPreview(sql: Sql, previewId: string): Promise<PreviewStack | null> {
  const [found] = await sql.query<PreviewStack>(OF_PREVIEW, [previewId]);
  return found ? { ...found, wants: found.wants.map((want) => ({ ...want, instances: 1 })) } : null;
}

const OF_RELEASE = named(`${DESIRED} where r.id = $1 order by p.type`);

/** What a release wants: of a preview one instance of each process type, else as many as are set. */
export async function desiredOfRelease(
  sql: Sql,
  releaseId: string,
  previewId: string | null,
): Promise<DesiredProcess[]> {
  const rows = await sql.query<DesiredProcess>(OF_RELEASE, [releaseId]);
  return rows.map((row) => ({ ...row, instances: previewId === null ? row.instances : 1 }));
}

const OF_OWNER = named(`${PRESENT} where i.application_id = $1 and i.preview_id is not distinct from $2 order by i.id`);

/** All instances of the stack, oldest first. */
export function presentInstances(sql: Sql, { application_id, preview_id }: StackKey): Promise<PresentInstance[]> {
  return sql.query<PresentInstance>(OF_OWNER, [application_id, preview_id]);
}

const WORKLOADS_OF_OWNER = named(
  `${WORKLOADS} where w.application_id = $1 and w.preview_id is not distinct from $2 and w.deleted_at is null`,
);

export function presentWorkloads(sql: Sql, { application_id, preview_id }: StackKey): Promise<PresentWorkload[]> {
  return sql.query<PresentWorkload>(WORKLOADS_OF_OWNER, [application_id, preview_id]);
}

const INSERT =
  named(`insert into instances (id, project_id, application_id, preview_id, process_id, process_type, deployment_id,
    release_id, created_at, updated_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)`);

/** Rows of new instances; their job starts them. */
export async function addInstances(sql: Sql, place: StackKey, want: DesiredProcess, count: number): Promise<void> {
  for (let made = 0; made < count; made += 1) {
    const id = mintId('ins');
    const { project_id, application_id, preview_id } = place;
    await sql.query(INSERT, [
      id,
      project_id,
      application_id,
      preview_id,
      want.process_id,
      want.type,
      want.deployment_id,
      want.release_id,
      timeOfId(id).toISOString(),
    ]);
  }
  if (count > 0) sql.due('instances');
}

/** Instances that are drained and stopped; their rows go at the end of it. */
async function retire(sql: Sql, where: string, values: readonly unknown[]): Promise<void> {
  const set = `status = 'stopping', status_reason = null, observed_generation = observed_generation + 1`;
  await (sql as Session).transaction(async (session) => {
    const rows = { table: 'instances', set, where: `${where} and status <> 'stopping'`, values };
    await recordEvents(session, 'instances', await changeRows(session, rows), 'stopping');
  });
}

export async function retireInstances(sql: Sql, ids: readonly string[]): Promise<void> {
  if (ids.length) await retire(sql, 'id = any($1)', [ids]);
}

/** Retires all instances of a deleted process type, also those of previews. */
export function retireInstancesOfProcess(sql: Sql, processId: string): Promise<void> {
  return retire(sql, 'process_id = $1 and deleted_at is null', [processId]);
}

/** All of an application, or of one of its previews. */
export function retireStack(sql: Sql, applicationId: string, previewId: string | null): Promise<void> {
  return retire(sql, 'application_id = $1 and ($2::text is null or preview_id = $2)', [applicationId, previewId]);
}

const SHOW =
  named(`update processes set status = $2, running_instances = $3, observed_generation = observed_generation + 1
  where id = $1 and (status <> $2 or running_instances <> $3) and instances = $4 and status = $5
    and release_id is not distinct from $6`);

/**
 * What a process type shows of itself, unless it was changed meanwhile: then the application is looked at again anyway.
 */
export async function updateProcessStatus(
  sql: Sql,
  seen: ProcessState,
  status: ProcessState['status'],
  running: number,
): Promise<void> {
  if (seen.status === status && seen.running_instances === running) return;
  await sql.query(SHOW, [seen.process_id, status, running, seen.instances, seen.status, seen.target_id]);
}

const UNDER_WAY = named(`select 1 from deployments where application_id = $1 and preview_id is not distinct from $2
  and status in ('building', 'deploying') and deleted_at is null limit 1`);

/** Whether a deployment of the stack is in progress. */
export async function isDeploying(sql: Sql, { application_id, preview_id }: StackKey): Promise<boolean> {
  return (await sql.query(UNDER_WAY, [application_id, preview_id])).length > 0;
}
