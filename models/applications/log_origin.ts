// The origin of log lines: from the id of a unit or an instance to the fields that its lines carry.
import type { Sql } from '../../core/context';
import type { LogLineInput } from './log_line';
import { named } from '../../db/statement';

/** What all lines of one origin share. */
export type LogOrigin = Pick<
  LogLineInput,
  'project_id' | 'application_id' | 'preview_id' | 'deployment_id' | 'instance_id' | 'run_id' | 'process_type' | 'step'
>;

const INSTANCES = named(
  `select id, project_id, application_id, preview_id, deployment_id, id as instance_id, process_type from instances
    where id = any($1)`,
);
const PODS = named(
  `select 'pod.' || pod_uid as id, project_id, application_id, preview_id, deployment_id, id as instance_id,
    process_type from instances where pod_uid = any($1)`,
);
const DEPLOYMENTS = named(
  `select id, project_id, application_id, preview_id, id as deployment_id from deployments where id = any($1)`,
);
const RUNS = named(
  `select id, project_id, application_id, preview_id, deployment_id, id as run_id,
    case when trigger_type <> 'release' then process_type end as process_type,
    case when trigger_type = 'release' then 'release' end as step from runs where id = any($1)`,
);
const APPLICATIONS = named(`select id, project_id, id as application_id from applications where id = any($1)`);

type Row = LogOrigin & { id: string };

/**
 * Of units: `ins_…`, `run_…`, `dep_….build`, `dep_….release`; of a cluster `pod.` and its uid, or `job.` and the id of
 * a run. Those whose row is gone are missing.
 */
export async function originsOfUnits(sql: Sql, unitIds: readonly string[]): Promise<Map<string, LogOrigin>> {
  const instances = unitIds.filter((id) => id.startsWith('ins_'));
  const tasks = unitIds.filter((id) => id.startsWith('dep_'));
  const found = new Map<string, LogOrigin>();
  if (instances.length)
    for (const { id, ...origin } of await sql.query<Row>(INSTANCES, [instances])) found.set(id, origin);
  const pods = unitIds.filter((id) => id.startsWith('pod.')).map((id) => id.slice('pod.'.length));
  if (pods.length) for (const { id, ...origin } of await sql.query<Row>(PODS, [pods])) found.set(id, origin);
  await addRuns(sql, unitIds, '', found);
  await addRuns(sql, unitIds, 'job.', found);
  if (!tasks.length) return found;
  const rows = await sql.query<Row>(DEPLOYMENTS, [[...new Set(tasks.map(deploymentOf))]]);
  const deployments = new Map(rows.map(({ id, ...origin }) => [id, origin]));
  for (const id of tasks) {
    const origin = deployments.get(deploymentOf(id));
    if (origin) found.set(id, { ...origin, step: id.endsWith('.release') ? 'release' : 'build' });
  }
  return found;
}

/** @param prefix of the ids of units, before the id of a run */
async function addRuns(sql: Sql, unitIds: readonly string[], prefix: string, found: Map<string, LogOrigin>) {
  const runs = unitIds.filter((id) => id.startsWith(`${prefix}run_`)).map((id) => id.slice(prefix.length));
  if (!runs.length) return;
  for (const { id, ...origin } of await sql.query<Row>(RUNS, [runs])) found.set(`${prefix}${id}`, origin);
}

/** Of applications as such, for lines that no instance wrote. */
export async function originsOfApplications(sql: Sql, ids: readonly string[]): Promise<Map<string, LogOrigin>> {
  const rows = await sql.query<Row>(APPLICATIONS, [ids]);
  return new Map(rows.map(({ id, ...origin }) => [id, origin]));
}

function deploymentOf(unitId: string): string {
  return unitId.slice(0, unitId.indexOf('.'));
}
