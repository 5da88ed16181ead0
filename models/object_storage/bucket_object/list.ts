// Lists of objects, for the API and the S3 endpoint: in the order of keys, flat however large the bucket is.
import type { Sql } from '../../../core/context';
import {
  endOfPrefix,
  GROUP,
  LAST_VERSION,
  type ListedVersion,
  type ObjectsQuery,
} from '../../../core/protocols/objects';
import { named } from '../../../db/statement';

const of = (o: string): string =>
  ['id', 'key', 'version_id', 'is_latest', 'is_delete_marker', 'size', 'etag', 'modified_at']
    .map((column) => `${o}.${column}`)
    .concat(
      `${o}.metadata->>'checksum_algorithm' as checksum_algorithm`,
      `${o}.metadata->>'checksum_type' as checksum_type`,
    )
    .join(', ');

const OBJECTS = named(`select null::text as common_prefix, ${of('o')} from bucket_objects o
  where o.bucket_id = $1 and o.is_latest and not o.is_delete_marker and o.key >= $2 and o.key > $3 and o.key < $4
  order by o.key limit $5`);
const VERSIONS = named(`select null::text as common_prefix, ${of('o')} from bucket_objects o
  where o.bucket_id = $1 and o.key >= $2 and (o.key, o.id) > ($3, $4) and o.key < $5
  order by o.key, o.id limit $6`);
const groups = (list: string): string => `select g.common_prefix, ${of('(g.object)')}
  from ${list}($1, $2, $3, $4, $5, $6, $7, $8) g`;
const GROUPS = named(groups('list_bucket_groups'));
const VERSION_GROUPS = named(groups('list_bucket_version_groups'));

export async function queryObjects(sql: Sql, query: ObjectsQuery): Promise<ListedVersion[]> {
  const { bucketId, prefix, delimiter, versions, after, limit } = query;
  const end = endOfPrefix(prefix);
  // After a group comes what does not begin with it.
  const isAfterGroup = after?.position === GROUP;
  const at = isAfterGroup ? endOfPrefix(after.key) : prefix;
  const afterKey = isAfterGroup ? '' : (after?.key ?? '');
  const afterId = isAfterGroup ? LAST_VERSION : (after?.position ?? LAST_VERSION);
  if (delimiter !== null)
    return sql.query(versions ? VERSION_GROUPS : GROUPS, [
      ...[bucketId, prefix, delimiter, at, afterKey, afterId, end, limit],
    ]);
  return versions
    ? sql.query(VERSIONS, [bucketId, at, afterKey, afterId, end, limit])
    : sql.query(OBJECTS, [bucketId, at, afterKey, end, limit]);
}
