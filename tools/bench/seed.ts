// The data of the benchmark: projects with thousands of volumes each, and what every answer about them must be.
import pg from 'pg';
import { mintId, timeOfId } from '../../core/ids';
import { scopes as allScopes } from '../../core/accounts/scopes';
import { mintToken } from '../../core/accounts/tokens';

/** A volume as both servers answer it: the same members in the same order. */
export interface VolumeRow {
  id: string;
  project_id: string;
  name: string;
  size_gb: number;
  region: string;
  application_id: string | null;
  mount_path: string | null;
  status: string;
  status_reason: null;
  enforcement: string;
  used_bytes: number;
  over_quota: boolean;
  created_at: string;
  updated_at: string;
}

export interface Project {
  id: string;
  applications: string[];
  /** Newest first. */
  volumes: VolumeRow[];
}

export interface Seed {
  /** A key with every scope, and one that may not read. */
  key: string;
  narrowKey: string;
  /** Projects that are read. */
  projects: Project[];
  /**
   * Empty projects that POST writes to, so that responses to reads are predictable. Enough of them that none nears the
   * usual quota.
   */
  targets: string[];
  /** Projects whose volumes are renamed, and whose applications have variables VARIABLE_0 … that are set. */
  changed: Project[];
}

const APPLICATIONS = 10;
export const VARIABLES = 10;
const CHANGED = { projects: 20, volumes: 80 };

/** Fills a database that has seen its first boot. */
export async function seed(url: string, size: { projects: number; volumes: number; targets: number }): Promise<Seed> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string; account_id: string }>('select id, account_id from users limit 1');
    const owner = rows[0] as { id: string; account_id: string };
    const projects: Project[] = [];
    for (let index = 0; index < size.projects; index += 1)
      projects.push(await fullProject(client, owner, size.volumes));
    const targets: string[] = [];
    for (let index = 0; index < size.targets; index += 1) targets.push(await newProject(client, owner));
    const changed: Project[] = [];
    for (let index = 0; index < CHANGED.projects; index += 1)
      changed.push(await fullProject(client, owner, CHANGED.volumes));
    for (const project of changed) await addVariables(client, project);
    const key = await newKey(client, owner.id, Object.keys(allScopes));
    const narrowKey = await newKey(client, owner.id, ['env:read']);
    await client.query('vacuum (analyze) volumes');
    await client.query('analyze');
    return { key, narrowKey, projects, targets, changed };
  } finally {
    await client.end();
  }
}

async function fullProject(
  client: pg.Client,
  owner: { id: string; account_id: string },
  count: number,
): Promise<Project> {
  const id = await newProject(client, owner);
  const applications = Array.from({ length: APPLICATIONS }, () => mintId('app'));
  await client.query(
    `insert into applications (id, project_id, name, region, application_type, default_hostname, created_at,
      updated_at, next_at)
     select a.id, $2, 'app-' || a.place, 'local', 'web', a.id || '.example.com', now(), now(), null
       from unnest($1::text[]) with ordinality as a (id, place)`,
    [applications, id],
  );
  const volumes = Array.from({ length: count }, (_, index) => volumeRow(id, index, applications));
  await client.query(
    `insert into volumes (id, project_id, name, size_gb, region, application_id, mount_path, status, enforcement,
      used_bytes, over_quota, created_at, updated_at, next_at)
     select id, project_id, name, size_gb, region, application_id, mount_path, status, enforcement, used_bytes,
       over_quota, created_at, updated_at, null
     from jsonb_populate_recordset(null::volumes, $1)`,
    [JSON.stringify(volumes)],
  );
  return { id, applications, volumes: volumes.reverse() };
}

async function addVariables(client: pg.Client, { id, applications }: Project): Promise<void> {
  const rows = applications.flatMap((application_id) =>
    Array.from({ length: VARIABLES }, (_, index) => ({
      id: mintId('env'),
      project_id: id,
      application_id,
      key: `VARIABLE_${index}`,
    })),
  );
  await client.query(
    `insert into environment_variables (id, project_id, application_id, key, value, value_hash, created_at,
      updated_at)
     select id, project_id, application_id, key, '', '', now(), now()
       from jsonb_populate_recordset(null::environment_variables, $1)`,
    [JSON.stringify(rows)],
  );
}

function volumeRow(project_id: string, index: number, applications: string[]): VolumeRow {
  const id = mintId('vol');
  const made = timeOfId(id).toISOString();
  const application_id = applications[index % applications.length] as string;
  const [size_gb, used_bytes] = [1 + (index % 500), 4096 * index];
  const place = { region: 'local', application_id, mount_path: `/data/${index}` };
  const state = { status: 'in_use', status_reason: null, enforcement: 'soft', used_bytes, over_quota: false };
  return { id, project_id, name: `volume-${index}`, size_gb, ...place, ...state, created_at: made, updated_at: made };
}

async function newProject(client: pg.Client, owner: { id: string; account_id: string }): Promise<string> {
  const id = mintId('prj');
  await client.query(
    `insert into projects (id, account_id, name, default_region, created_at, updated_at)
      values ($1, $2, 'Benchmark', 'local', now(), now())`,
    [id, owner.account_id],
  );
  await client.query(`insert into members (project_id, user_id, role) values ($1, $2, 'owner')`, [id, owner.id]);
  return id;
}

async function newKey(client: pg.Client, user: string, scopes: string[]): Promise<string> {
  const { token, prefix, hash } = mintToken('personal');
  await client.query(
    `insert into api_keys (id, kind, name, prefix, hash, user_id, scopes)
      values ($1, 'personal', 'Benchmark', $2, $3, $4, $5)`,
    [mintId('key'), prefix, hash, user, scopes],
  );
  return token;
}
