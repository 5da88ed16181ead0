// What the job of an instance needs to know to start it.
import type { Sql } from '../core/context';
import type { ReleaseProcess, ReleaseSettings } from './release';
import { spreadRows } from '../db/loop_rows';
import { named } from '../db/statement';

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
  /** Sealed, see models/release.ts. */
  variables: string;
}

const LAUNCH = named(`select a.id as application_id, a.name as application_name, a.region, a.tenant,
    a.project_id,
    coalesce(v.hostname, a.default_hostname) as hostname,
    d.id as deployment_id, d.commit_sha, coalesce(d.artifact_id, d.id) as artifact_id,
    r.id as release_id, r.settings, r.processes -> i.process_type as process, r.variables
  from instances i join releases r on r.id = i.release_id join deployments d on d.id = i.deployment_id
    join applications a on a.id = i.application_id left join previews v on v.id = i.preview_id
  where i.id = $1`);

/** null where the row has gone. */
export async function findLaunch(sql: Sql, instanceId: string): Promise<Launch | null> {
  const [found] = await sql.query<Launch>(LAUNCH, [instanceId]);
  return found ?? null;
}

const PORTS = named('select port from instances where port is not null');

/** Ports that instances have, or will listen on. */
export async function takenPorts(sql: Sql): Promise<Set<number>> {
  return new Set((await sql.query<{ port: number }>(PORTS, [])).map(({ port }) => port));
}

/** A volume that stands at a path of the application. */
export interface AttachedVolume {
  name: string;
  mount_path: string;
  /** On the host; null until it is made. */
  path: string | null;
}

const VOLUMES = named(`select name, mount_path, observed ->> 'path' as path from volumes
  where application_id = $1 and mount_path is not null and deleted_at is null order by mount_path`);

export function attachedVolumes(sql: Sql, applicationId: string): Promise<AttachedVolume[]> {
  return sql.query<AttachedVolume>(VOLUMES, [applicationId]);
}

const SPREAD_MS = 1_000;

/** Whatever happened while nobody looked is found soon. */
export async function wakeAllInstances(sql: Sql): Promise<void> {
  await spreadRows(sql, { table: 'instances', where: `status <> 'stopping'`, values: [] }, SPREAD_MS);
}
