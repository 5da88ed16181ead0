// What the job of an instance needs to know to start it.
import type { Sql } from '../../core/context';
import type { AttachedDatabase } from './attached_database';
import type { ReleaseProcess, ReleaseSettings } from './release_settings';
import { spreadRows } from '../../db/loop_rows';
import { named } from '../../db/statement';

/** All that an instance is started from. */
export interface Launch {
  application_id: string;
  application_name: string;
  region: string;
  tenant: number;
  project_id: string;
  /** Of the application or the preview. */
  hostname: string;
  deployment_id: string;
  commit_sha: string | null;
  /** Names the directory of its files. */
  artifact_id: string;
  release_id: string;
  settings: ReleaseSettings;
  /** Of its process type; null where that is not part of the release. */
  process: ReleaseProcess | null;
  /** Sealed, see models/deployments/release.ts. */
  variables: string;
  /** Whose variables it has. */
  databases: AttachedDatabase[];
  /** What the build plan sets, unless the owner does otherwise. */
  planned_variables: Record<string, string>;
  /** The port on which its program listens whatever PORT says: of its deployment, else as of the one in service. */
  found_port: number | null;
  /** Of its deployment; 0: it is not looked for any more. null: none was found. */
  own_found_port: number | null;
}

const LAUNCH = named(`select a.id as application_id, a.name as application_name, a.region, a.tenant,
    a.project_id,
    coalesce(v.hostname, a.default_hostname) as hostname,
    d.id as deployment_id, d.commit_sha, coalesce(d.artifact_id, d.id) as artifact_id,
    r.id as release_id, r.settings, r.processes -> i.process_type as process, r.variables, r.databases,
    coalesce(d.plan -> 'env', '{}') as planned_variables, (d.plan -> 'found_port')::int as own_found_port,
    nullif(coalesce(d.plan -> 'found_port', (select c.plan -> 'found_port' from deployments c
      where c.id = a.current_deployment_id))::int, 0) as found_port
  from instances i join releases r on r.id = i.release_id join deployments d on d.id = i.deployment_id
    join applications a on a.id = i.application_id left join previews v on v.id = i.preview_id
  where i.id = $1`);

/** null where the row has gone. */
export async function findLaunch(sql: Sql, instanceId: string): Promise<Launch | null> {
  const [found] = await sql.query<Launch>(LAUNCH, [instanceId]);
  return found ?? null;
}

const SAVE_FOUND_PORT = named(
  `update deployments set plan = plan || jsonb_build_object('found_port', $2::int) where id = $1`,
);

/** Stores the port on which the built program listens: instances of later releases, and of rollbacks, try it first. */
export async function saveFoundPort(sql: Sql, deploymentId: string, port: number): Promise<void> {
  await sql.query(SAVE_FOUND_PORT, [deploymentId, port]);
}

const FORGET_FOUND_PORT = named(
  `update deployments set plan = plan || '{"found_port": 0}' where id = $1 and status = 'deploying'`,
);

/** While a deployment is tried: with the port that was found its instances do not come up. */
export async function forgetFoundPort(sql: Sql, deploymentId: string): Promise<void> {
  await sql.query(FORGET_FOUND_PORT, [deploymentId]);
}

const PORTS = named('select port from instances where port is not null');

/** Ports that instances have, or will listen on. */
export async function takenPorts(sql: Sql): Promise<Set<number>> {
  return new Set((await sql.query<{ port: number }>(PORTS, [])).map(({ port }) => port));
}

/** A volume that stands at a path of the application. */
interface AttachedVolume {
  id: string;
  name: string;
  mount_path: string;
  /** null until it is made. */
  driver: string | null;
  /** On the host; null until it is made. */
  path: string | null;
}

// One that is being restored has other files in a moment.
const VOLUMES = named(`select id, name, driver, mount_path,
    case when restoring_from is null then observed ->> 'path' end as path from volumes
  where application_id = $1 and mount_path is not null and deleted_at is null order by mount_path`);

export function attachedVolumes(sql: Sql, applicationId: string): Promise<AttachedVolume[]> {
  return sql.query<AttachedVolume>(VOLUMES, [applicationId]);
}

const SPREAD_MS = 1_000;

/** Makes all instances due, so that changes during downtime of the worker are noticed soon. */
export async function wakeAllInstances(sql: Sql): Promise<void> {
  await spreadRows(sql, { table: 'instances', where: `status <> 'stopping'`, values: [] }, SPREAD_MS);
}
