// Garbage collection of a registry: images that lost their last tag long ago, and layers that no image names. A push in
// progress is safe: a layer that a client sent or found stays for an hour, and the manifest that names it keeps it from
// then on.
import type { Sql } from '../../../core/context';
import type { Session } from '../../../db/control_database';
import { named } from '../../../db/statement';
import { NO_BACKUP_IS_MADE } from '../../base/installation_backup';

const BATCH = 500;
/** Each is a request to another server. */
const HELD_BATCH = 50;

/** A manifest in a repository. */
interface StoredAt {
  repository: string;
  digest: string;
}

// A manifest stays while an index names it, and as long as the one that it refers to.
const COLLECT_MANIFESTS = named(
  `delete from registry_manifests m using (
      select repository, digest from registry_manifests c
      where registry_id = $1 and untagged_at < now() - $2 * interval '1 day'
        and not exists (select from registry_references r
          where r.registry_id = $1 and r.target = c.digest and r.repository = c.repository)
        and not exists (select from registry_manifests s
          where s.registry_id = $1 and s.repository = c.repository and s.digest = c.subject)
      limit ${BATCH}) as old
    where m.registry_id = $1 and m.repository = old.repository and m.digest = old.digest
    returning m.repository, m.digest, length(m.content) as size_bytes`,
);
const COLLECT_BLOBS = named(
  `delete from registry_blobs b where registry_id = $1 and touched_at < now() - interval '1 hour'
      and digest in (select digest from registry_blobs c
        where registry_id = $1 and touched_at < now() - interval '1 hour'
        and not exists (select from registry_references r where r.registry_id = $1 and r.target = c.digest)
          and ${NO_BACKUP_IS_MADE}
        order by touched_at limit ${BATCH} for update skip locked)
    returning digest, size_bytes`,
);
const FORGET_UPLOADS = named(
  `delete from registry_uploads where registry_id = $1 and created_at < now() - interval '2 days'`,
);
const LOCK_REGISTRY = named('select 1 from registries where id = $1 for update');
const SHRINK = named(
  `update registries set size_bytes = size_bytes - $2, updated_at = greatest(now(), updated_at),
    observed_generation = observed_generation + 1 where id = $1`,
);
const DROP_BLOBS = named(
  `delete from registry_blobs where registry_id = $1
    and digest in (select digest from registry_blobs where registry_id = $1 limit ${BATCH}) returning digest`,
);
const HELD = named(
  `select m.repository, m.digest, coalesce(array_agg(r.target) filter (where r.target is not null), '{}') as targets
    from (select repository, digest from registry_manifests where registry_id = $1 limit ${HELD_BATCH}) as m
    left join registry_references r on r.registry_id = $1 and r.repository = m.repository and r.digest = m.digest
    group by m.repository, m.digest`,
);
const DROP_MANIFESTS = named(
  `delete from registry_manifests m using unnest($2::text[], $3::text[]) as gone (repository, digest)
    where m.registry_id = $1 and m.repository = gone.repository and m.digest = gone.digest`,
);
const WITHOUT_ROW = named(
  `select digest from unnest($1::text[]) as digest where not exists (select from registry_blobs b
    where b.digest = digest.digest)`,
);

/** One batch. @returns layers and manifests that the registry has no longer, and whether there may be more */
export async function collectGarbage(
  database: Session,
  registryId: string,
  untaggedDays: number,
): Promise<{ digests: string[]; manifests: StoredAt[]; hasMore: boolean }> {
  return database.transaction(async (sql) => {
    await sql.query(LOCK_REGISTRY, [registryId]);
    const manifests = await sql.query<StoredAt & { size_bytes: number }>(COLLECT_MANIFESTS, [registryId, untaggedDays]);
    const blobs = await sql.query<{ digest: string; size_bytes: number }>(COLLECT_BLOBS, [registryId]);
    await sql.query(FORGET_UPLOADS, [registryId]);
    const freed = [...manifests, ...blobs].reduce((sum, { size_bytes }) => sum + size_bytes, 0);
    if (freed) await sql.query(SHRINK, [registryId, freed]);
    const hasMore = manifests.length === BATCH || blobs.length === BATCH;
    return { digests: blobs.map(({ digest }) => digest), manifests, hasMore };
  });
}

/** Of a registry in tear-down: a batch of manifests, and the layers that each names. */
export async function heldManifests(sql: Sql, registryId: string): Promise<(StoredAt & { targets: string[] })[]> {
  return sql.query(HELD, [registryId]);
}

export async function dropManifests(sql: Sql, registryId: string, manifests: readonly StoredAt[]): Promise<void> {
  const columns = [manifests.map(({ repository }) => repository), manifests.map(({ digest }) => digest)];
  await sql.query(DROP_MANIFESTS, [registryId, ...columns]);
}

/** Takes a batch of layers from a registry in tear-down. @returns their digests; empty at the end */
export async function dropBlobs(sql: Sql, registryId: string): Promise<string[]> {
  return (await sql.query<{ digest: string }>(DROP_BLOBS, [registryId])).map(({ digest }) => digest);
}

/** Returns the digests that no registry has. */
export async function unusedDigests(sql: Sql, digests: readonly string[]): Promise<string[]> {
  return (await sql.query<{ digest: string }>(WITHOUT_ROW, [digests])).map(({ digest }) => digest);
}
