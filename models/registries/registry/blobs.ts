// Layers of a registry: which it has, and what may be done with their files.
import type { Sql } from '../../../core/context';
import { named, quick } from '../../../db/statement';

/** A client that found an existing layer needs time to push the manifest that names it. */
const TOUCH_AFTER = `interval '10 minutes'`;

const BLOB = quick(
  `select size_bytes, touched_at < now() - ${TOUCH_AFTER} as is_stale from registry_blobs
    where registry_id = $1 and digest = $2`,
);
const TOUCH = named('update registry_blobs set touched_at = now() where registry_id = $1 and digest = $2');
const LOCK_DIGEST = named('select pg_advisory_xact_lock(hashtextextended($1, 0))');
const HAS_ROOM = named(
  'select size_bytes + $2 <= $3 as fits from registries where id = $1 and deleted_at is null for update',
);
const ADD_BLOB = named(
  `insert into registry_blobs (registry_id, digest, size_bytes) values ($1, $2, $3)
    on conflict (registry_id, digest) do update set touched_at = now() returning xmax = 0 as is_new`,
);
const DELETE_BLOB = named('delete from registry_blobs where registry_id = $1 and digest = $2 returning size_bytes');
const IS_REFERENCED = named('select 1 from registry_references where registry_id = $1 and target = $2 limit 1');
export const END_UPLOAD = named('delete from registry_uploads where id = $1');
const IS_USED = named('select 1 from registry_blobs where digest = $1 limit 1');
export const COUNT = named(
  `update registries set size_bytes = size_bytes + $2, image_count = image_count + $3,
    updated_at = greatest(now(), updated_at),
    observed_generation = observed_generation + 1 where id = $1`,
);
export interface LockedRegistry {
  id: string;
  name: string;
  project_id: string;
}

export const LOCK_REGISTRY = named(
  'select id, name, project_id from registries where id = $1 and deleted_at is null for update',
);

export async function findBlob(sql: Sql, registryId: string, digest: string): Promise<number | null> {
  const [row] = await sql.query<{ size_bytes: number; is_stale: boolean }>(BLOB, [registryId, digest]);
  if (row?.is_stale) await sql.query(TOUCH, [registryId, digest]);
  return row?.size_bytes ?? null;
}

export async function addBlob(
  sql: Sql,
  registryId: string,
  { digest, size, sizeMax, upload }: { digest: string; size: number; sizeMax: number; upload: string },
  place: () => Promise<void>,
): Promise<boolean> {
  const [registry] = await sql.query<{ fits: boolean }>(HAS_ROOM, [registryId, size, sizeMax]);
  if (!registry?.fits) return false;
  await sql.query(LOCK_DIGEST, [digest]);
  await place();
  const [added] = await sql.query<{ is_new: boolean }>(ADD_BLOB, [registryId, digest, size]);
  if (added?.is_new) await sql.query(COUNT, [registryId, size, 0]);
  await sql.query(END_UPLOAD, [upload]);
  return true;
}

export async function deleteBlob(
  sql: Sql,
  registryId: string,
  digest: string,
): Promise<'deleted' | 'in_use' | 'unknown'> {
  await sql.query(LOCK_REGISTRY, [registryId]);
  if ((await sql.query(IS_REFERENCED, [registryId, digest])).length) return 'in_use';
  const [row] = await sql.query<{ size_bytes: number }>(DELETE_BLOB, [registryId, digest]);
  if (!row) return 'unknown';
  await sql.query(COUNT, [registryId, -row.size_bytes, 0]);
  return 'deleted';
}

/** Runs `remove` if no registry has a row of the digest, under a lock that prevents new rows. */
export async function ifBlobUnused(sql: Sql, digest: string, remove: () => Promise<void>): Promise<void> {
  await sql.query(LOCK_DIGEST, [digest]);
  if (!(await sql.query(IS_USED, [digest])).length) await remove();
}
