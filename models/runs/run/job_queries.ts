// What the job of a run reads and writes beside its row.
import type { Sql } from '../../../core/context';
import { limits } from '../../../core/limits';
import type { Session } from '../../../db/control_database';
import { tearDownRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import type { AttachedDatabase } from '../../applications/attached_database';
import type { InstanceStatus } from '../../../schema/types';
import type { ReleaseSettings } from '../../applications/release_settings';

/** All that a run is started from. */
export interface RunLaunch {
  application_name: string;
  region: string;
  tenant: number;
  /** Of the application or the preview. */
  hostname: string;
  commit_sha: string | null;
  /** Names the directory of its files. */
  artifact_id: string;
  settings: ReleaseSettings;
  /** Of the release; sealed. */
  variables: string;
  /** What the build plan sets, unless the owner does otherwise. */
  planned_variables: Record<string, string>;
  databases: AttachedDatabase[];
  /** `apps/app_…@sha256:…`: also of a release before it with the same files; null where there is none. */
  image: string | null;
}

const LAUNCH = named(`select a.name as application_name, a.region, a.tenant,
    coalesce(v.hostname, a.default_hostname) as hostname, d.commit_sha, coalesce(d.artifact_id, d.id) as artifact_id,
    r.settings, r.variables, coalesce(d.plan -> 'env', '{}') as planned_variables, r.databases,
    coalesce(r.image, (select o.image from releases o
      where o.deployment_id = r.deployment_id and o.image is not null order by o.id desc limit 1)) as image
  from runs join releases r on r.id = runs.release_id join deployments d on d.id = runs.deployment_id
    join applications a on a.id = runs.application_id left join previews v on v.id = runs.preview_id
  where runs.id = $1`);

/** null where the release or its deployment has gone. */
export async function findRunLaunch(sql: Sql, id: string): Promise<RunLaunch | null> {
  return (await sql.query<RunLaunch>(LAUNCH, [id]))[0] ?? null;
}

/** As far as a command that enters it must know it. */
export interface EnteredInstance {
  id: string;
  application_id: string;
  preview_id: string | null;
  process_type: string;
  port: number | null;
  status: InstanceStatus;
  started_at: string | null;
}

const INSTANCE = named(`select id, application_id, preview_id, process_type, port, status, started_at from instances
  where id = $1 and deleted_at is null`);

/** null where the instance has gone. */
export async function findEnteredInstance(sql: Sql, id: string): Promise<EnteredInstance | null> {
  return (await sql.query<EnteredInstance>(INSTANCE, [id]))[0] ?? null;
}

const ARTIFACT = named('select coalesce(artifact_id, id) as id from deployments where id = $1');

/** The id of the directory of the files that a deployment runs; null where the deployment has gone. */
export async function artifactOfDeployment(sql: Sql, deploymentId: string): Promise<string | null> {
  const [row] = await sql.query<{ id: string }>(ARTIFACT, [deploymentId]);
  return row?.id ?? null;
}

const UNFINISHED = named(`select id from runs where application_id = $1 and deleted_at is null
  and status in ('queued', 'starting', 'running') order by id`);

export function unfinishedRuns(sql: Sql, applicationId: string): Promise<{ id: string }[]> {
  return sql.query(UNFINISHED, [applicationId]);
}

const OLD = `id in (select id from runs where finished_at < now() - interval '${limits.runsKeptDays} days'
  and deleted_at is null order by finished_at limit 1000)`;

/** Tears down runs that finished long ago. */
export async function sweepRuns(sql: Session): Promise<{ rows: number; full: boolean }> {
  const rows = await tearDownRows(sql, { table: 'runs', where: OLD, values: [] });
  return { rows: rows.length, full: rows.length === 1_000 };
}

const WITHOUT_ROW = named(`select id from unnest($1::text[]) as known (id)
  where not exists (select 1 from runs r where r.id = known.id)`);

/** Those of the ids that no row has. */
export async function runsWithoutRow(sql: Sql, ids: readonly string[]): Promise<string[]> {
  return (await sql.query<{ id: string }>(WITHOUT_ROW, [ids])).map(({ id }) => id);
}
