// Releases: what instances run. The files of a deployment, with a snapshot of settings, commands, sizes and variables,
// so that later changes take effect with the next release.
import { applicationTypeDefinitions, defaultApplicationType } from '../../core/catalog/catalog_definitions';
import type { Sql } from '../../core/context';
import { mintId, timeOfId } from '../../core/ids';
import type { ImageSettings, PulledImage } from '../../core/protocols/image_settings';
import type { SecretBox } from '../../core/secrets';
import type { Application } from '../applications/application';
import { settingsOf } from '../applications/application_settings';
import type { ReleaseProcess, ReleaseSettings } from '../applications/release_settings';
import { variablesOf } from '../environment/environment_variable';
import { attachedDatabases } from '../applications/attached_database';
import { isFromFork } from './from_fork';
import { variablesOfPreview } from './preview_databases';
import { named } from '../../db/statement';
import { commandsOf } from './release_image';
import { sealedColumns } from '../base/sealed_columns';

interface ReleaseOwner {
  application_id: string;
  preview_id: string | null;
  /** Whose files it runs. */
  deployment_id: string;
}

interface ReleaseParts extends Pick<Application, 'id' | 'settings' | 'application_type'> {
  project_id: string;
  plan: {
    processes: Record<string, string>;
    env: Record<string, string>;
    root_directory?: string;
    image?: PulledImage;
  } | null;
}

const FIND = named(`select a.id, a.project_id, a.settings, a.application_type, d.plan from applications a
  join deployments d on d.application_id = a.id where a.id = $1 and d.id = $2`);
const PROCESSES = named(
  'select type, command, application_type from processes where application_id = $1 order by type',
);
const INSERT =
  named(`insert into releases (id, project_id, application_id, preview_id, deployment_id, settings, processes,
    variables, created_at, updated_at, databases, image)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, (select r.image from releases r
    where r.deployment_id in (select d.id from deployments d join deployments own on own.id = $5
        where d.application_id = $3 and coalesce(d.artifact_id, d.id) = coalesce(own.artifact_id, own.id))
      and r.image is not null
      and ($6::jsonb ? 'image' or r.settings -> 'root_directory' = $6::jsonb -> 'root_directory'
        and r.settings -> 'run' -> 'release_command' is not distinct from $6::jsonb -> 'run' -> 'release_command'
        and ${commandsOf('r.processes')} is not distinct from ${commandsOf('$7::jsonb')})
    order by r.id desc limit 1))`);

/**
 * Creates a release from the current settings and returns its id. @throws Error where the deployment belongs to another
 * application
 */
export async function createRelease(sql: Sql, secrets: SecretBox, place: ReleaseOwner): Promise<string> {
  const [found] = await sql.query<ReleaseParts>(FIND, [place.application_id, place.deployment_id]);
  if (!found) throw new Error('a release needs a deployment of its application');
  const id = mintId('rel');
  const isOfFork = await isFromFork(sql, place.preview_id);
  const own = isOfFork ? {} : await variablesOf(sql, secrets, found.id, 'runtime');
  const databases = isOfFork ? [] : await attachedDatabases(sql, found.id, place.preview_id);
  const ofPreview = await variablesOfPreview(sql, secrets, place.preview_id);
  const variables = { ...found.plan?.env, ...own, ...ofPreview };
  await sql.query(INSERT, [
    id,
    found.project_id,
    found.id,
    place.preview_id,
    place.deployment_id,
    JSON.stringify(settingsNow(found)),
    JSON.stringify(await processesNow(sql, found)),
    secrets.seal(JSON.stringify(variables), sealedColumns.releaseVariables.contextOf(id)),
    timeOfId(id).toISOString(),
    JSON.stringify(databases),
  ]);
  return id;
}

/** The variables of a release, opened. */
export function variablesOfRelease(
  secrets: SecretBox,
  release: { id: string; variables: string },
): Record<string, string> {
  return JSON.parse(secrets.open(release.variables, sealedColumns.releaseVariables.contextOf(release.id))) as Record<
    string,
    string
  >;
}

const PRUNE = named(`delete from releases r where r.application_id = $1
  and not exists (select 1 from processes p where p.application_id = r.application_id and p.release_id = r.id)
  and not exists (select 1 from previews p where p.application_id = r.application_id and p.release_id = r.id)
  and not exists (select 1 from instances i where i.release_id = r.id)
  and not exists (select 1 from runs u where u.release_id = r.id and u.status in ('queued', 'starting', 'running'))
  and not exists (select 1 from workloads w where w.release_id = r.id)
  and not exists (select 1 from deployments d where d.id = r.deployment_id and d.release_id = r.id)`);

/** Forgets releases of the application that nothing runs, or will run. */
export async function pruneReleases(sql: Sql, applicationId: string): Promise<void> {
  await sql.query(PRUNE, [applicationId]);
}

// Files that were built below one directory are not run from another.
function settingsNow(found: ReleaseParts): ReleaseSettings {
  const { run, http, build, health_check: check } = settingsOf(found as unknown as Application);
  const health_check = { ...check, type: check.type ?? DEFAULT_HEALTH_CHECK };
  const root_directory = found.plan?.root_directory ?? build.root_directory;
  const ofImage = found.plan?.image?.settings;
  const chosen_port = found.settings.http?.port ?? null;
  if (!ofImage) return { run, http, health_check, root_directory, ...(chosen_port !== null && { chosen_port }) };
  // An explicit port overrides the one that the image exposes.
  const image = { ...ofImage, exposed_port: chosen_port ?? ofImage.exposed_port };
  return { run, http, root_directory, ...healthNow(image, found.settings, health_check) };
}

const DEFAULT_HEALTH_CHECK = 'tcp';

/** HEALTHCHECK of an image applies until the application has an explicit health check. */
function healthNow(
  image: ImageSettings,
  { health_check: stored }: Application['settings'],
  health_check: ReleaseSettings['health_check'],
): Pick<ReleaseSettings, 'image' | 'health_check'> {
  const { health_check: ofImage, ...rest } = image;
  if (stored?.type != null || ofImage === undefined) return { image: rest, health_check };
  if (ofImage === 'none') return { image: rest, health_check: { ...health_check, type: 'none' } };
  return { image, health_check };
}

/** Process types without a command are left out. */
async function processesNow(sql: Sql, found: ReleaseParts): Promise<Record<string, ReleaseProcess>> {
  const rows = await sql.query<{ type: string; command: string | null; application_type: string | null }>(PROCESSES, [
    found.id,
  ]);
  return Object.fromEntries(
    rows.flatMap(({ type, command, application_type }) => {
      const line = command ?? found.plan?.processes[type] ?? null;
      return line === null ? [] : [[type, { command: line, ...sizeOf(application_type ?? found.application_type) }]];
    }),
  );
}

/** What an application type gives; an unknown one is like the default. */
export function sizeOf(id: string): Omit<ReleaseProcess, 'command'> {
  const named = (wanted: string) => applicationTypeDefinitions.find((type) => type.id === wanted);
  const type = named(id) ?? named(defaultApplicationType);
  if (!type) throw new Error('the catalog has no default application type');
  return { memory_mb: type.memory_mb, cpus: type.vcpu, disk_mb: type.disk_gb * 1024 };
}
