// Retention of finished deployments: the files of the last ten that were active, the rows of the last hundred.
import type { Sql } from '../../core/context';
import { limits } from '../../core/limits';
import { named } from '../../db/statement';

interface DeploymentKey {
  application_id: string;
  preview_id: string | null;
}

// A preview can't be rolled back, so only its current artifact is kept.
const KEEP = named(`with ranked as (
    select id, row_number() over (order by activated_at desc, number desc) as place from deployments
    where application_id = $1 and preview_id is not distinct
      from $2 and activated_at is not null and deleted_at is null)
  update deployments d set artifact_kept = false, observed_generation = observed_generation + 1
  from ranked where d.id = ranked.id and d.artifact_kept and ranked.place > $3 returning d.artifact_id as id`);
const FORGET = named(`delete from deployments d where d.application_id = $1 and d.preview_id is not distinct from $2
  and d.status in ('superseded', 'failed', 'canceled') and not d.artifact_kept and d.next_at is null
    and d.deleted_at is null
  and d.number <= (select number from deployments where application_id = $1 and preview_id is not distinct from $2
    order by number desc offset $3 limit 1)
  and not exists (select 1 from instances i where i.deployment_id = d.id)
  and not exists (select 1 from runs u where u.deployment_id = d.id and u.status in ('queued', 'starting', 'running'))
  and not exists (select 1 from workloads w where w.deployment_id = d.id)
  and not exists (select 1 from releases r join processes p on p.release_id = r.id where r.deployment_id = d.id)`);

/** Applies the retention and returns the ids of artifact directories that are no longer needed. */
export async function keepDeployments(sql: Sql, { application_id, preview_id }: DeploymentKey): Promise<string[]> {
  const released = await sql.query<{ id: string }>(KEEP, [
    application_id,
    preview_id,
    preview_id === null ? limits.deploymentsRollbackMax : 1,
  ]);
  await sql.query(FORGET, [application_id, preview_id, limits.deploymentsKeptMax]);
  return unusedArtifacts(
    sql,
    released.map(({ id }) => id),
  );
}

const USED = `exists (select 1 from deployments d where d.artifact_id = artifact.id
    and (d.artifact_kept or d.status in ('queued', 'building', 'deploying', 'active')))
  or exists (select 1 from instances i join deployments d on d.id = i.deployment_id where d.artifact_id = artifact.id)
  or exists (select 1 from runs u join deployments d on d.id = u.deployment_id where d.artifact_id = artifact.id
    and u.status in ('queued', 'starting', 'running'))
  or exists (select 1 from deployments d join deployments p on p.promoted_from ->> 'deployment_id' = d.id
    where d.artifact_id = artifact.id and p.plan is null and p.status in ('queued', 'deploying'))`;
const UNUSED = named(`select id from unnest($1::text[]) as artifact (id) where not (${USED})`);

/** Returns the ids of artifact directories that no deployment keeps or runs. */
export async function unusedArtifacts(sql: Sql, ids: readonly string[]): Promise<string[]> {
  return (await sql.query<{ id: string }>(UNUSED, [ids])).map(({ id }) => id);
}

const LAYERS = named(`select distinct jsonb_array_elements_text(plan -> 'image' -> 'layers') as digest from deployments
  where application_id = $1 and plan -> 'image' is not null and deleted_at is null
    and (artifact_kept or status in ('queued', 'building', 'deploying', 'active'))
    and ($2::text is null) = (preview_id is null)`);

/** Digests of the unpacked layers of images that an application keeps, or its previews. */
export async function keptLayers(sql: Sql, applicationId: string, previewId: string | null): Promise<Set<string>> {
  const rows = await sql.query<{ digest: string }>(LAYERS, [applicationId, previewId]);
  return new Set(rows.map(({ digest }) => digest));
}

const GONE = named(
  `select id from unnest($1::text[]) as owned (id) where not exists (select 1 from applications a
    where a.id = owned.id)`,
);

/** Returns the application ids that have no row, not even one in tear-down. */
export async function withoutApplicationRow(sql: Sql, ids: readonly string[]): Promise<string[]> {
  return (await sql.query<{ id: string }>(GONE, [ids])).map(({ id }) => id);
}
