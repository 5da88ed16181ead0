// Objects of a bucket as the console lists them.
import type { Context } from '../../../core/context';
import { hashFilters } from '../../../core/cursor';
import { limits } from '../../../core/limits';
import { GROUP, type ListedObject, type ListedVersion, type ObjectsQuestion } from '../../../core/protocols/objects';
import type { BucketObject } from '../../../schema/types';
import type { Page } from '../../base/page';
import type { Bucket } from '../bucket';
import { askEngine } from './engine';
import { queryObjects } from '../bucket_object/list';

interface ObjectsArguments {
  limit?: number | null;
  cursor?: string | null;
  sort?: string | null;
  prefix?: string | null;
  delimiter?: string | null;
  versions?: boolean | null;
}

/**
 * One page in the order of keys; of versions of one key the newest comes first.
 * @throws invalid_cursor, provider_error
 */
export async function pageOfObjects(ctx: Context, bucket: Bucket, args: ObjectsArguments): Promise<Page<BucketObject>> {
  const limit = args.limit ?? limits.pageSizeDefault;
  const { prefix, delimiter, versions } = args;
  const expect = {
    sort: 'key',
    filters: hashFilters({ bucket: bucket.id, prefix, delimiter, versions: versions ?? false }),
  };
  const after = args.cursor != null ? ctx.cursors.decode(args.cursor, expect) : null;
  const rows = await readObjects(ctx, bucket, {
    prefix: prefix ?? '',
    delimiter: delimiter ?? null,
    versions: versions ?? false,
    after: after && { key: String(after.key), position: after.id },
    limit: limit + 1,
  });
  const data = rows.slice(0, limit);
  const last = data.at(-1);
  const next_cursor =
    rows.length > limit && last ? ctx.cursors.encode({ ...expect, key: last.key, id: last.position }) : null;
  return { data: data.map(({ position: _, ...row }) => row), next_cursor };
}

async function readObjects(ctx: Context, bucket: Bucket, question: ObjectsQuestion): Promise<ListedObject[]> {
  if (ctx.probes.bucketObjects) return askEngine(ctx, bucket, question);
  const { id } = bucket;
  const entries = await queryObjects(ctx.sql, { bucketId: id, ...question });
  return entries.map((row) =>
    row.common_prefix === null ? listed(row) : { ...NOTHING, type: 'prefix', key: row.common_prefix },
  );
}

const NOTHING = { size_bytes: null, etag: null, last_modified_at: null, version_id: null, position: GROUP };

function listed({ key, id, is_delete_marker, size, etag, modified_at, version_id }: ListedVersion): ListedObject {
  return {
    type: is_delete_marker ? 'delete_marker' : 'object',
    key,
    size_bytes: is_delete_marker ? null : size,
    etag: is_delete_marker ? null : etag,
    last_modified_at: modified_at,
    version_id: version_id === 'null' ? null : version_id,
    position: String(id),
  };
}
