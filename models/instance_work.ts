// What the job of an instance needs to know to start it, and who is told when a unit of the runtime has ended.
import type { Sql } from '../core/context';
import type { ReleaseProcess, ReleaseSettings } from './release';
import { makeRowsDue, spreadRows } from '../db/loop_rows';
import { named } from '../db/statement';

/** All that an instance is started from. */
export interface Launch {
  application_id: string;
  application_name: string;
  region: string;
  tenant: number;
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

const LAUNCH =
  named(`select a.id as application_id, a.name as application_name, a.region, a.tenant, coalesce(v.hostname, a.default_hostname) as hostname,
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

const FREE = '(lease_until is null or lease_until < now())';
const OWNER_COLUMN = {
  instances: 'id',
  deployments: 'id',
  databases: 'server_id',
  database_replicas: 'server_id',
  database_endpoints: 'id',
};

/**
 * The row that a unit of the runtime belongs to (`ins_…`, `dep_….build`, `db_….server`) is looked at, because the unit has ended. It is no
 * change of what is wanted, so a step that is at work on the row is not disturbed.
 * @returns false where there is such a step: it may have looked too early
 */
export async function wakeUnit(sql: Sql, unitId: string): Promise<boolean> {
  const [id = ''] = unitId.split('.');
  for (const table of tablesOf(id)) {
    const where = `${OWNER_COLUMN[table]} = $1 and ${FREE}`;
    if (!(await makeRowsDue(sql, { table, where, values: [id] })).length) continue;
    return true;
  }
  return false;
}

/** The server of a replica is that of a database once it was promoted. */
function tablesOf(id: string): (keyof typeof OWNER_COLUMN)[] {
  if (id.startsWith('ins_')) return ['instances'];
  if (id.startsWith('dep_')) return ['deployments'];
  if (id.startsWith('dbe_')) return ['database_endpoints'];
  return ['databases', 'database_replicas'];
}

const LOST = named(`select unit from unnest($1::text[]) as unit
  where not exists (select 1 from instances i where i.id = unit) and not exists (select 1 from deployments d where d.id = split_part(unit, '.', 1))
    and not exists (select 1 from databases d where d.server_id = split_part(unit, '.', 1)) and not exists (select 1 from database_replicas r where r.server_id = split_part(unit, '.', 1))
    and not exists (select 1 from database_endpoints e where e.id = split_part(unit, '.', 1))`);

/** Those of the units whose row has gone. */
export async function unitsWithoutRow(sql: Sql, unitIds: readonly string[]): Promise<string[]> {
  return (await sql.query<{ unit: string }>(LOST, [unitIds])).map(({ unit }) => unit);
}

const SPREAD_MS = 1_000;

/** Whatever happened while nobody looked is found soon. */
export async function wakeAllInstances(sql: Sql): Promise<void> {
  await spreadRows(sql, { table: 'instances', where: `status <> 'stopping'`, values: [] }, SPREAD_MS);
}
