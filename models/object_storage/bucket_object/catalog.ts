// Objects as the S3 endpoint reads and writes them. Every write is one call of a function of the database
// (migrations/frozen/), so it is one transaction and one way there and back.
import { randomBytes } from 'node:crypto';
import type { Config } from '../../../core/config';
import type { Context, Sql, Statement } from '../../../core/context';
import {
  ObjectRefused,
  type Deleted,
  type Deletion,
  type NewObject,
  type ObjectLock,
  type Refusal,
  type StoredObject,
  type StoredPart,
  type StoredUpload,
} from '../../../core/protocols/objects';
import { named, quick } from '../../../db/statement';
import { batchedPuts, REFUSED } from './put_batches';
import { newVersionId } from './version_id';

type Parts = { sql: Sql; config: Pick<Config, 'quotas'> };

const COLUMNS = `id, key, version_id, is_latest, is_delete_marker, size, etag, file_id, part_count, upload_id,
  modified_at, metadata, tags, is_public, retain_mode, retain_until, legal_hold`;
const LATEST = quick(`select ${COLUMNS} from bucket_objects where bucket_id = $1 and key = $2 order by id limit 1`);
const VERSION = named(
  `select ${COLUMNS} from bucket_objects where bucket_id = $1 and key = $2 and version_id = $3 limit 1`,
);
const PARTS = quick(`select number, file_id, size, '' as etag, checksums, '' as modified_at
  from bucket_object_parts where object_id = $1 order by number`);
const PUT = named(`select ${COLUMNS} from put_bucket_object($1, $2, $3)`);
const DELETE = named(`select d.version_id, d.is_delete_marker, d.deleted, d.refusal
  from unnest($2::text[], $3::text[], $4::text[], $5::jsonb[], $6::boolean[])
    with ordinality as k (key, version, marker, conditions, bypass, n)
  cross join lateral delete_bucket_object_if($1, k.key, k.version, k.marker, k.conditions, k.bypass, $7) d
  order by k.n`);
const TAG = named('update bucket_objects set tags = $2 where id = $1');
const PUBLISH = named('update bucket_objects set is_public = $2 where id = $1');
const RETAIN = named('select set_bucket_object_retention($1, $2, $3, $4, $5)');
const HOLD = named('select set_bucket_object_hold($1, $2, $3)');
const CREATE_UPLOAD = named(`insert into bucket_uploads (id, bucket_id, key, object)
  select $1, b.id, $3, $4 from buckets b where b.id = $2 and b.deleted_at is null returning id`);
const UPLOAD = named(`select id, bucket_id, key, object, created_at from bucket_uploads
  where id = $1 and bucket_id = $2 and key = $3`);
const UPLOADS = named(`select id, bucket_id, key, object, created_at from bucket_uploads
  where bucket_id = $1 and key >= $2 and (key, id) > ($3, $4) and key < $5 order by key, id limit $6`);
const PUT_PART = named('select put_bucket_part($1, $2, $3, $4) as modified_at');
const UPLOAD_PARTS = named(`select number, file_id, size, etag, checksums, modified_at from bucket_upload_parts
  where upload_id = $1 order by number`);
const COMPLETE = named(`select ${COLUMNS} from complete_bucket_upload($1, $2, $3, $4, $5)`);
const ABORT = named('select abort_bucket_upload($1, $2)');

/** The latest version without one; a delete marker counts as a version. */
export async function findObject(
  sql: Sql,
  bucketId: string,
  key: string,
  versionId: string | null,
): Promise<StoredObject | null> {
  const [row] = versionId
    ? await sql.query<StoredObject>(VERSION, [bucketId, key, versionId])
    : await sql.query<StoredObject>(LATEST, [bucketId, key]);
  return row ?? null;
}

export function objectParts(sql: Sql, objectId: number): Promise<StoredPart[]> {
  return sql.query(PARTS, [objectId]);
}

/** @throws ObjectRefused */
export async function putObject({ sql, config }: Parts, bucketId: string, object: NewObject): Promise<StoredObject> {
  const values = [bucketId, JSON.stringify({ ...object, version_id: newVersionId() }), limitOf(config)];
  return (await write<StoredObject>(sql, PUT, values))[0] as StoredObject;
}

/** As putObject, for many writers. @throws ObjectRefused */
export function objectWriter(parts: Parts): (bucketId: string, object: NewObject) => Promise<StoredObject> {
  const batches = { sql: parts.sql, projectLimit: limitOf(parts.config), columns: COLUMNS };
  return batchedPuts(batches, (bucketId, object) => putObject(parts, bucketId, object));
}

/** One whose conditions do not hold, or that is locked, is left, and the others go. @throws ObjectRefused */
export function deleteObjects(
  { sql, config }: Parts,
  bucketId: string,
  deletions: readonly Deletion[],
): Promise<Deleted[]> {
  return write(sql, DELETE, [
    bucketId,
    deletions.map(({ key }) => key),
    deletions.map(({ version_id }) => version_id),
    deletions.map(() => newVersionId()),
    deletions.map(({ conditions }) => (conditions ? JSON.stringify(conditions) : null)),
    deletions.map(({ bypass_governance }) => bypass_governance === true),
    limitOf(config),
  ]);
}

export async function setObjectTags(sql: Sql, objectId: number, tags: Record<string, string> | null): Promise<void> {
  await sql.query(TAG, [objectId, tags && JSON.stringify(tags)]);
}

export async function setObjectPublic(sql: Sql, objectId: number, isPublic: boolean): Promise<void> {
  await sql.query(PUBLISH, [objectId, isPublic]);
}

/**
 * Sets the retention; null for both removes it. Retention is not shortened, except governance mode by callers who may
 * bypass it.
 * @throws ObjectRefused
 */
export async function setObjectRetention(
  sql: Sql,
  bucketId: string,
  objectId: number,
  retention: Pick<ObjectLock, 'retain_mode' | 'retain_until'> & { bypass: boolean },
): Promise<void> {
  const { retain_mode, retain_until, bypass } = retention;
  await write(sql, RETAIN, [bucketId, objectId, retain_mode, retain_until, bypass]);
}

/** @throws ObjectRefused */
export async function setObjectHold(sql: Sql, bucketId: string, objectId: number, hold: boolean): Promise<void> {
  await write(sql, HOLD, [bucketId, objectId, hold]);
}

/** @throws ObjectRefused */
export async function createUpload(
  sql: Sql,
  bucketId: string,
  { key, object }: Pick<StoredUpload, 'key' | 'object'>,
): Promise<string> {
  // In the order of their beginning, as lists of one key show them.
  const id = Date.now().toString(36).padStart(9, '0') + randomBytes(18).toString('hex');
  const made = await sql.query(CREATE_UPLOAD, [id, bucketId, key, JSON.stringify(object)]);
  if (!made.length) throw new ObjectRefused('NoSuchBucket');
  return id;
}

export async function findUpload(sql: Sql, bucketId: string, key: string, id: string): Promise<StoredUpload | null> {
  return (await sql.query<StoredUpload>(UPLOAD, [id, bucketId, key]))[0] ?? null;
}

export function listUploads(
  sql: Sql,
  range: { bucketId: string; prefix: string; end: string; after: { key: string; id: string }; limit: number },
): Promise<StoredUpload[]> {
  const { bucketId, prefix, end, after, limit } = range;
  return sql.query(UPLOADS, [bucketId, prefix, after.key, after.id, end, limit]);
}

/** @returns when it was stored. @throws ObjectRefused */
export async function putPart(
  { sql, config }: Parts,
  bucketId: string,
  uploadId: string,
  part: Omit<StoredPart, 'modified_at'> & { key: string },
): Promise<string> {
  const values = [bucketId, uploadId, JSON.stringify(part), limitOf(config)];
  const [row] = await write<{ modified_at: string }>(sql, PUT_PART, values);
  return row?.modified_at as string;
}

export function uploadParts(sql: Sql, uploadId: string): Promise<StoredPart[]> {
  return sql.query(UPLOAD_PARTS, [uploadId]);
}

/** @throws ObjectRefused, where the parts have changed meanwhile too */
export async function completeUpload(
  { sql, config }: Parts,
  bucketId: string,
  uploadId: string,
  fileIds: string[],
  object: NewObject,
): Promise<StoredObject> {
  const text = JSON.stringify({ ...object, version_id: newVersionId() });
  const rows = await write<StoredObject>(sql, COMPLETE, [bucketId, uploadId, fileIds, text, limitOf(config)]);
  return rows[0] as StoredObject;
}

/** @throws ObjectRefused */
export async function abortUpload(sql: Sql, bucketId: string, uploadId: string): Promise<void> {
  await write(sql, ABORT, [bucketId, uploadId]);
}

function limitOf(config: Pick<Context['config'], 'quotas'>): number | null {
  return config.quotas.bucket_storage_bytes ?? null;
}

async function write<Row>(sql: Sql, statement: Statement, values: readonly unknown[]): Promise<Row[]> {
  try {
    return await sql.query<Row>(statement, values);
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    throw code === REFUSED ? new ObjectRefused(message as Refusal) : error;
  }
}
