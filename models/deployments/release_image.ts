// Images of releases in the registry of the platform: which release has which, and which are needed no longer.
import type { Sql } from '../../core/context';
import { named } from '../../db/statement';
import { PLATFORM_PROJECT } from '../registries/registry/platform_name';
import type { ReleaseProcess, ReleaseSettings } from '../applications/release_settings';

/**
 * SQL of the commands of a release. An image serves where its programs start alike: variables, sizes and ports are not
 * in images.
 */
export const commandsOf = (processes: string): string =>
  `(select jsonb_object_agg(key, value -> 'command') from jsonb_each(${processes}))`;

/** `apps/app_…@sha256:…`. */
type ReleaseImage = string;

export interface ReleaseToPublish {
  settings: ReleaseSettings;
  processes: Record<string, ReleaseProcess>;
  image: ReleaseImage | null;
}

const FIND = named('select settings, processes, image from releases where id = $1');

export async function findReleaseToPublish(sql: Sql, releaseId: string): Promise<ReleaseToPublish | null> {
  return (await sql.query<ReleaseToPublish>(FIND, [releaseId]))[0] ?? null;
}

const SAVE = named('update releases set image = $2, updated_at = greatest(now(), updated_at) where id = $1');

/** Before the registry has it: an image that no release names is garbage. */
export async function saveReleaseImage(sql: Sql, releaseId: string, image: ReleaseImage): Promise<void> {
  await sql.query(SAVE, [releaseId, image]);
}

// As long as a deployment can be rolled back to, or anything runs of it.
const NEEDED = `exists (select 1 from releases r join deployments d on d.id = r.deployment_id
    where r.image = image.id and d.deleted_at is null
      and (d.artifact_kept or d.status in ('queued', 'building', 'deploying', 'active')))
  or exists (select 1 from releases r join instances i on i.release_id = r.id where r.image = image.id)
  or exists (select 1 from releases r join workloads w on w.release_id = r.id where r.image = image.id)
  or exists (select 1 from releases r join runs u on u.deployment_id = r.deployment_id where r.image = image.id
    and u.status in ('queued', 'starting', 'running'))
  or exists (select 1 from releases r join deployments p on p.promoted_from ->> 'deployment_id' = r.deployment_id
    where r.image = image.id and p.status in ('queued', 'deploying'))`;
const UNNEEDED = named(`select id from unnest($1::text[]) as image (id) where not (${NEEDED})`);

/** Those of the images that no release needs. */
export async function unneededImages(sql: Sql, images: readonly ReleaseImage[]): Promise<ReleaseImage[]> {
  return (await sql.query<{ id: ReleaseImage }>(UNNEEDED, [images])).map(({ id }) => id);
}

const PROMOTED =
  named(`select o.id, o.project_id, o.application_id, o.artifact_id, o.files_on, o.plan, a.tenant, r.image,
    coalesce(r.settings -> 'run' ->> 'release_command', o.plan ->> 'release_command') as release_command,
    n.processes is null or (${commandsOf('r.processes')} is not distinct from ${commandsOf('n.processes')}
      and r.settings -> 'root_directory' = n.settings -> 'root_directory'
      and r.settings -> 'run' -> 'release_command' is not distinct from n.settings -> 'run' -> 'release_command')
      as starts_alike
  from deployments d join deployments o on o.id = d.promoted_from ->> 'deployment_id'
    join applications a on a.id = o.application_id left join releases r on r.id = o.release_id
    left join releases n on n.id = d.release_id
  where d.id = $1 and o.deleted_at is null and a.deleted_at is null and o.plan is not null`);

/** The deployment whose files another one takes over; `image`: of its release. */
export interface PromotedRow {
  id: string;
  project_id: string;
  application_id: string;
  artifact_id: string | null;
  files_on: string | null;
  plan: object;
  tenant: number;
  image: ReleaseImage | null;
  /** What has run in its files, and may have written there. */
  release_command: string | null;
  /** Whether the programs of the new release, if there is one, start as those of the image. */
  starts_alike: boolean;
}

/** null where it is gone, or its application. */
export async function findPromoted(sql: Sql, deploymentId: string): Promise<PromotedRow | null> {
  return (await sql.query<PromotedRow>(PROMOTED, [deploymentId]))[0] ?? null;
}

const STORED = named(`select r.name || '/' || m.repository || '@' || m.digest as image
  from registries r join registry_manifests m on m.registry_id = r.id
  where r.project_id = '${PLATFORM_PROJECT}' and ($1::text is null or m.repository = $1)
    and m.repository like 'app\\_%'`);

/** Of an application, or of all. */
export async function storedImages(sql: Sql, applicationId: string | null): Promise<ReleaseImage[]> {
  return (await sql.query<{ image: ReleaseImage }>(STORED, [applicationId])).map(({ image }) => image);
}

const OF_APPLICATION = named(`select d.number, d.status, r.image, r.created_at from releases r
  join deployments d on d.id = r.deployment_id
  where r.application_id = $1 and r.image is not null and d.deleted_at is null order by r.id desc limit 100`);

/** For the operator: the newest first. */
export async function imagesOfApplication(
  sql: Sql,
  applicationId: string,
): Promise<{ number: number; status: string; image: ReleaseImage; created_at: string }[]> {
  return sql.query(OF_APPLICATION, [applicationId]);
}
