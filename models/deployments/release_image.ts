// Images of releases in the registry of the platform: which release has which, and which are needed no longer.
import type { Sql } from '../../core/context';
import { named } from '../../db/statement';
import { PLATFORM_PROJECT } from '../registries/registry/platform_name';
import type { ReleaseProcess, ReleaseSettings } from '../applications/release_settings';

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
    and u.status in ('queued', 'starting', 'running'))`;
const UNNEEDED = named(`select id from unnest($1::text[]) as image (id) where not (${NEEDED})`);

/** Those of the images that no release needs. */
export async function unneededImages(sql: Sql, images: readonly ReleaseImage[]): Promise<ReleaseImage[]> {
  return (await sql.query<{ id: ReleaseImage }>(UNNEEDED, [images])).map(({ id }) => id);
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
