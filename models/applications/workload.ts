// Workloads of a cluster: a process type of a release with its number of instances. Their job applies them; the rows
// of instances follow the pods that come of it.
import type { Context, Sql } from '../../core/context';
import { mintId, timeOfId } from '../../core/ids';
import { newGenerationOf, tearDownRows, wakeRows } from '../../db/loop_rows';
import { named } from '../../db/statement';
import type { AttachedDatabase } from './attached_database';
import type { ReleaseProcess, ReleaseSettings } from './release_settings';
import type { DesiredProcess, StackKey } from './stack';

const ENSURE = named(`insert into workloads (id, project_id, application_id, preview_id, process_id, process_type,
    deployment_id, release_id, instances, created_at, updated_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)
  on conflict (release_id, process_id) do update set instances = excluded.instances, deleted_at = null,
    updated_at = excluded.updated_at, ${newGenerationOf('workloads')}
    where workloads.instances <> excluded.instances or workloads.deleted_at is not null
  returning id`);

/**
 * Desires so many instances of a process type of its release. @returns whether that was anything new
 * @param want with a release
 */
export async function ensureWorkload(
  sql: Sql,
  { project_id, application_id, preview_id }: StackKey,
  want: DesiredProcess,
  instances: number,
): Promise<boolean> {
  const id = mintId('wkl');
  const changed = await sql.query(ENSURE, [
    ...[id, project_id, application_id, preview_id, want.process_id, want.type],
    ...[want.deployment_id, want.release_id, instances, timeOfId(id).toISOString()],
  ]);
  if (changed.length) sql.due('workloads');
  return changed.length > 0;
}

const LEFT = named('select 1 from workloads where deployment_id = $1 limit 1');

/** What their pods are given has changed. @param applicationIds null is left out */
export async function wakeWorkloads(
  { sql, config }: Pick<Context, 'sql' | 'config'>,
  applicationIds: readonly (string | null)[],
): Promise<void> {
  const ids = applicationIds.filter((id) => id !== null);
  if (config.workloads !== 'kubernetes' || !ids.length) return;
  await wakeRows(sql, { table: 'workloads', where: 'application_id = any($1)', values: [ids] });
}

const WAKE_STACK = named('select wake_stack($1, $2, $3)');

/** What is in the way of its instances has changed: its application, preview and deployment look at it. */
export async function wakeOwnersOfWorkload(
  sql: Sql,
  { application_id, preview_id, deployment_id }: Omit<StackKey, 'project_id'> & { deployment_id: string },
): Promise<void> {
  await sql.query(WAKE_STACK, [application_id, preview_id, deployment_id]);
}

/** Their instances are drained and stopped; the rows go at the end of it. */
export async function retireWorkloads(sql: Sql, ids: readonly string[]): Promise<void> {
  if (ids.length) await tearDownRows(sql, { table: 'workloads', where: 'id = any($1)', values: [ids] });
}

/** Retires those of a deployment that failed or was deleted. @returns whether some are left */
export async function retireWorkloadsOfDeployment(sql: Sql, deploymentId: string): Promise<boolean> {
  await tearDownRows(sql, { table: 'workloads', where: 'deployment_id = $1', values: [deploymentId] });
  return (await sql.query(LEFT, [deploymentId])).length > 0;
}

/** All that a workload is applied from. */
export interface WorkloadLaunch {
  application_name: string;
  region: string;
  /** Of the application or the preview. */
  hostname: string;
  commit_sha: string | null;
  settings: ReleaseSettings;
  /** null where the type is not part of the release. */
  process: ReleaseProcess | null;
  /** Sealed, see models/deployments/release.ts. */
  variables: string;
  /** Whose variables it has. */
  databases: AttachedDatabase[];
  /** `apps/app_…@sha256:…`; null where its commands differ from those of the image. */
  image: string | null;
  /** The port on which its program listens whatever PORT says. */
  found_port: number | null;
}

const LAUNCH = named(`select a.name as application_name, a.region, coalesce(v.hostname, a.default_hostname) as hostname,
    d.commit_sha, r.settings, r.processes -> w.process_type as process, r.variables, r.databases,
    r.image, nullif((d.plan -> 'found_port')::int, 0) as found_port
  from workloads w join releases r on r.id = w.release_id join deployments d on d.id = w.deployment_id
    join applications a on a.id = w.application_id left join previews v on v.id = w.preview_id
  where w.id = $1`);

/** null where the row has gone. */
export async function findWorkloadLaunch(sql: Sql, workloadId: string): Promise<WorkloadLaunch | null> {
  return (await sql.query<WorkloadLaunch>(LAUNCH, [workloadId]))[0] ?? null;
}

const WITHOUT_ROW = named(`select id from unnest($1::text[]) as known (id)
  where not exists (select 1 from workloads w where w.id = known.id)`);

/** Those of the ids that no row has. */
export async function workloadsWithoutRow(sql: Sql, ids: readonly string[]): Promise<string[]> {
  return (await sql.query<{ id: string }>(WITHOUT_ROW, [ids])).map(({ id }) => id);
}
