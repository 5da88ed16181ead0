// What the jobs of buckets and access keys read and write beside their own rows.
import { permissionIn, type Grant } from '../../../core/protocols/buckets/bucket_access';
import type { Permission } from '../../../core/protocols/buckets/bucket_actions';
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';

const KEYS =
  named(`select id, access_key_id, grants from bucket_access_keys where project_id = $1 and deleted_at is null
  order by access_key_id`);

/** Keys of the project, with what they may do in the bucket. */
export async function bucketKeys(
  sql: Sql,
  bucket: { id: string; project_id: string },
): Promise<{ id: string; access_key_id: string; permission: Permission | null }[]> {
  const keys = await sql.query<{ id: string; access_key_id: string; grants: Grant[] }>(KEYS, [bucket.project_id]);
  return keys.map(({ id, access_key_id, grants }) => ({
    id,
    access_key_id,
    permission: permissionIn(grants, bucket.id),
  }));
}

const PURGE = [
  'delete from bucket_garbage where bucket_id = $1',
  'delete from bucket_uploads where bucket_id = $1',
].map((text) => named(text));

/** The files of a bucket in tear-down are gone: nothing has to remember them. */
export async function forgetFiles(sql: Sql, bucketId: string): Promise<void> {
  for (const statement of PURGE) await sql.query(statement, [bucketId]);
}

const KEYS_WITHOUT_ROW = named(
  'select id from unnest($1::text[]) as id where not exists (select 1 from bucket_access_keys k where k.id = id.id)',
);

/** Returns the ids without an access key, also none in tear-down. */
export async function keysWithoutRow(sql: Sql, ids: readonly string[]): Promise<string[]> {
  return (await sql.query<{ id: string }>(KEYS_WITHOUT_ROW, [ids])).map(({ id }) => id);
}

const WITHOUT_ROW = named(
  'select id from unnest($1::text[]) as id where not exists (select 1 from buckets b where b.id = id.id)',
);

/** Returns the ids without a bucket, also none in tear-down. */
export async function bucketsWithoutRow(sql: Sql, ids: readonly string[]): Promise<string[]> {
  return (await sql.query<{ id: string }>(WITHOUT_ROW, [ids])).map(({ id }) => id);
}

const MEASURED = named(`with measured as (update bucket_usage set object_count = $2, size_bytes = $3
    where bucket_id = $1)
  update buckets set object_count = $2, size_bytes = $3 where id = $1 and (object_count, size_bytes) <> ($2, $3)`);
const MEASURED_DAY = named(`insert into bucket_days as d (bucket_id, day, size_bytes, egress_bytes, requests)
  values ($1, $2, $3, $4, $5) on conflict (bucket_id, day) do update
  set size_bytes = excluded.size_bytes, egress_bytes = excluded.egress_bytes, requests = excluded.requests`);

/** What an engine that keeps its own books has counted. */
export async function recordMeasured(
  sql: Sql,
  bucketId: string,
  usage: { object_count: number; size_bytes: number },
  days: readonly { day: string; egress_bytes: number; requests: number }[],
): Promise<void> {
  await sql.query(MEASURED, [bucketId, usage.object_count, usage.size_bytes]);
  for (const { day, egress_bytes, requests } of days)
    await sql.query(MEASURED_DAY, [bucketId, day, usage.size_bytes, egress_bytes, requests]);
}
