// Queries of the S3 endpoint for buckets and keys, and its updates: traffic, key usage, settings, garbage.
import type { Grant } from '../../../core/protocols/buckets/bucket_access';
import type { Sql } from '../../../core/context';
import type { BucketSetting } from '../../../core/protocols/objects';
import type { SecretBox } from '../../../core/secrets';
import { changeRows, NEW_VERSION } from '../../../db/loop_rows';
import { named, quick } from '../../../db/statement';
import { NO_BACKUP_IS_MADE } from '../../base/installation_backup';
import type { Bucket } from '../bucket';
import { statusAt } from '../bucket_access_key';
import { openSecret } from '../bucket_access_key/secret';

export type BucketRow = Pick<
  Bucket,
  'id' | 'project_id' | 'name' | 'region' | 'versioned_at' | 'created_at' | BucketSetting
>;

const COLUMNS = `id, project_id, name, region, access, versioning, versioned_at, website, cors, lifecycle, policy,
  policy_document, object_lock, default_retention, public_access_block, object_ownership, created_at`;
const BY_NAME = quick(`select ${COLUMNS} from buckets where name = $1 and deleted_at is null`);
const OF_PROJECT = named(`select ${COLUMNS} from buckets where project_id = $1 and deleted_at is null order by name`);
const KEY = quick(`select id, name, project_id, access_key_id, sealed_secret, grants, enabled, expires_at
  from bucket_access_keys where access_key_id = $1 and deleted_at is null`);
const PRINCIPALS = named('select access_key_id from bucket_access_keys where project_id = $1 and deleted_at is null');

export async function bucketByName(sql: Sql, name: string): Promise<BucketRow | null> {
  return (await sql.query<BucketRow>(BY_NAME, [name]))[0] ?? null;
}

export function bucketsOfProject(sql: Sql, projectId: string): Promise<BucketRow[]> {
  return sql.query(OF_PROJECT, [projectId]);
}

interface KeyCredentials {
  id: string;
  name: string;
  accessKeyId: string;
  secretAccessKey: string;
  projectId: string;
  grants: Grant[];
  isActive: boolean;
}

export async function keyCredentials(
  sql: Sql,
  secrets: SecretBox,
  accessKeyId: string,
): Promise<KeyCredentials | null> {
  const [row] = await sql.query<{
    id: string;
    name: string;
    project_id: string;
    sealed_secret: string;
    grants: Grant[];
    enabled: boolean;
    expires_at: string | null;
  }>(KEY, [accessKeyId]);
  if (!row) return null;
  const isActive = statusAt(row, Date.now()) === 'active';
  const secretAccessKey = openSecret(secrets, row);
  const { id, name, project_id: projectId, grants } = row;
  return { id, name, accessKeyId, secretAccessKey, projectId, grants, isActive };
}

export async function principalsOf(sql: Sql, projectId: string): Promise<Set<string>> {
  const rows = await sql.query<{ access_key_id: string }>(PRINCIPALS, [projectId]);
  return new Set(rows.map(({ access_key_id }) => access_key_id));
}

type Change = Partial<Pick<BucketRow, BucketSetting>>;

const JSON_COLUMNS = ['website', 'cors', 'lifecycle', 'policy', 'default_retention', 'public_access_block'];

/** Settings that a client of S3 has changed: a new version of the bucket, and due for the loop. */
export async function changeBucket(sql: Sql, bucketId: string, change: Change): Promise<void> {
  const values: unknown[] = [bucketId];
  const sets = [NEW_VERSION];
  for (const [column, value] of Object.entries(change)) {
    const isJson = JSON_COLUMNS.includes(column);
    sets.push(`${column} = $${values.push(isJson && value !== null ? JSON.stringify(value) : value)}`);
  }
  // Suspended, it has the null version and delete markers, also where it was never on.
  if (change.versioning !== undefined) sets.push('versioned_at = coalesce(versioned_at, now())');
  if (change.lifecycle) sets.push('lifecycle_at = null');
  await changeRows(sql, { table: 'buckets', where: 'id = $1 and deleted_at is null', values, set: sets.join(', ') });
}

const TRAFFIC = named(`insert into bucket_days as d (bucket_id, day, size_bytes, egress_bytes, requests)
  select u.bucket_id, (now() at time zone 'utc')::date, u.size_bytes, c.egress, c.requests
  from unnest($1::text[], $2::bigint[], $3::bigint[]) as c (bucket_id, egress, requests)
  join bucket_usage u on u.bucket_id = c.bucket_id order by u.bucket_id
  on conflict (bucket_id, day) do update set size_bytes = excluded.size_bytes,
    egress_bytes = d.egress_bytes + excluded.egress_bytes, requests = d.requests + excluded.requests`);
const SIZES = named(`update buckets b set object_count = u.object_count, size_bytes = u.size_bytes from bucket_usage u
  where u.bucket_id = b.id and b.id = any($1) and (b.object_count, b.size_bytes) <> (u.object_count, u.size_bytes)`);
const USED = named(`update bucket_access_keys set last_used_at = date_trunc('minute', now())
  where access_key_id = any($1) and last_used_at is distinct from date_trunc('minute', now())`);

/** Traffic since the last call, and the sizes that lists show. */
export async function storeTraffic(
  sql: Sql,
  traffic: ReadonlyMap<string, { egress: number; requests: number }>,
  usedKeys: readonly string[],
): Promise<void> {
  const ids = [...traffic.keys()];
  const counts = [...traffic.values()];
  await sql.query(TRAFFIC, [ids, counts.map(({ egress }) => egress), counts.map(({ requests }) => requests)]);
  await sql.query(SIZES, [ids]);
  if (usedKeys.length) await sql.query(USED, [usedKeys]);
}

const GARBAGE = named(`select file_id, bucket_id from bucket_garbage where ${NO_BACKUP_IS_MADE}
  order by created_at limit $1`);
const FORGET = named('delete from bucket_garbage where file_id = any($1)');
// A file of garbage has its row until it is gone.
const ORPHANS = named(`select f.id from unnest($1::text[]) as f (id)
  where not exists (select from bucket_objects o where o.file_id = f.id)
    and not exists (select from bucket_object_parts p where p.file_id = f.id)
    and not exists (select from bucket_upload_parts p where p.file_id = f.id)
    and not exists (select from bucket_garbage g where g.file_id = f.id)`);

export function garbage(sql: Sql, limit: number): Promise<{ file_id: string; bucket_id: string }[]> {
  return sql.query(GARBAGE, [limit]);
}

export async function forgetGarbage(sql: Sql, fileIds: readonly string[]): Promise<void> {
  await sql.query(FORGET, [fileIds]);
}

/** Returns the files that no row names. */
export async function filesWithoutRow(sql: Sql, fileIds: readonly string[]): Promise<string[]> {
  return (await sql.query<{ id: string }>(ORPHANS, [fileIds])).map(({ id }) => id);
}
