// Lifecycle rules of buckets whose objects are rows here. A pass walks the bucket in pages of keys, so that no
// statement grows with the bucket; a page that is repeated after a crash changes nothing. A locked object stays until a
// pass after the end of its lock.
import type { Sql } from '../../../core/context';
import { endOfPrefix } from '../../../core/protocols/objects';
import { named } from '../../../db/statement';
import type { BucketLifecycleRule } from '../../../schema/types';
import { newVersionId } from '../bucket_object/version_id';

/** Where a pass stands. */
export interface LifecyclePosition {
  rule: number;
  pass: Pass;
  key: string;
  id: number;
}

type Pass = 'objects' | 'versions' | 'uploads';
const PASSES: readonly Pass[] = ['objects', 'versions', 'uploads'];
const PAGE = 2000;
const DAY_MS = 86_400_000;

export const LIFECYCLE_START: LifecyclePosition = { rule: 0, pass: 'objects', key: '', id: 0 };

interface FoundPage {
  last_key: string | null;
  last_id: number | null;
  rows: number;
  keys: string[];
  ids: number[];
  versions: string[];
}

const page = (columns: string, from: string, expired: string): string => `
  with page as (select ${columns} from ${from})
  select count(*)::int as rows, (array_agg(key order by n desc))[1] as last_key,
    (array_agg(id order by n desc))[1] as last_id,
    coalesce(array_agg(key order by n) filter (where ${expired}), '{}') as keys,
    coalesce(array_agg(id order by n) filter (where ${expired}), '{}') as ids,
    coalesce(array_agg(version_id order by n) filter (where ${expired}), '{}') as versions from page`;
const NUMBERED = 'row_number() over (order by o.key, o.id) as n, o.key, o.id, o.version_id';

const OBJECTS = named(
  page(
    `${NUMBERED}, o.modified_at`,
    `(select * from bucket_objects where bucket_id = $1 and is_latest and not is_delete_marker and key > $2
      and key >= $3
      and key < $4 order by key limit ${PAGE}) o`,
    'modified_at < $5',
  ),
);
// A delete marker that nothing is behind any more goes too.
const VERSIONS = named(
  page(
    `${NUMBERED}, o.noncurrent_at, o.modified_at, o.is_latest, o.is_delete_marker`,
    `(select * from bucket_objects where bucket_id = $1 and (key, id) > ($2, $6) and key >= $3 and key < $4
      order by key, id limit ${PAGE}) o`,
    `(not is_latest and noncurrent_at < $5) or (is_latest and is_delete_marker and modified_at < $5
      and not exists (select 1 from bucket_objects v where v.bucket_id = $1 and v.key = page.key
        and v.id > page.id))`,
  ),
);
const UPLOADS = named(`select id, key from bucket_uploads where bucket_id = $1 and key >= $2 and key < $3
  and created_at < $4 order by key, id limit ${PAGE}`);
const DELETE =
  named(`select d.deleted from unnest($2::text[], $3::text[], $4::text[], $5::bigint[]) as k (key, version, marker,
    id)
  cross join lateral delete_bucket_object($1, k.key, k.version, k.marker, k.id, false, null) d`);
const ABORT = named('select abort_bucket_upload($1, $2)');

/**
 * One page of a pass. @returns where the next page begins, null at the end of the last rule
 */
export async function applyLifecycle(
  sql: Sql,
  bucketId: string,
  rules: readonly BucketLifecycleRule[],
  position: LifecyclePosition,
  now = Date.now(),
): Promise<LifecyclePosition | null> {
  const rule = rules[position.rule];
  if (!rule) return null;
  const days = {
    objects: rule.expire_after_days,
    versions: rule.expire_noncurrent_after_days,
    uploads: rule.abort_incomplete_uploads_after_days,
  }[position.pass];
  if (!rule.enabled || days == null) return nextPass(position);
  const before = new Date(now - days * DAY_MS).toISOString();
  return runPage(sql, bucketId, rule.prefix, position, before);
}

function nextPass({ rule, pass }: LifecyclePosition): LifecyclePosition {
  const next = PASSES[PASSES.indexOf(pass) + 1];
  return { ...LIFECYCLE_START, ...(next ? { rule, pass: next } : { rule: rule + 1 }) };
}

async function runPage(
  sql: Sql,
  bucketId: string,
  prefix: string,
  position: LifecyclePosition,
  before: string,
): Promise<LifecyclePosition> {
  const end = endOfPrefix(prefix);
  if (position.pass === 'uploads') {
    const uploads = await sql.query<{ id: string }>(UPLOADS, [bucketId, prefix, end, before]);
    for (const { id } of uploads) await sql.query(ABORT, [bucketId, id]).catch(ignoreGone);
    return uploads.length < PAGE ? nextPass(position) : position;
  }
  const isVersions = position.pass === 'versions';
  const values = [bucketId, position.key, prefix, end, before];
  const [found] = await sql.query<FoundPage>(
    isVersions ? VERSIONS : OBJECTS,
    isVersions ? [...values, position.id] : values,
  );
  if (!found?.rows) return nextPass(position);
  if (found.keys.length) {
    const versions = found.keys.map((_, index) => (isVersions ? found.versions[index] : null));
    const markers = found.keys.map(() => newVersionId());
    await sql.query(DELETE, [bucketId, found.keys, versions, markers, found.ids]);
  }
  return found.rows < PAGE
    ? nextPass(position)
    : { ...position, key: found.last_key as string, id: found.last_id as number };
}

/** Ignores uploads that a concurrent request has completed or aborted. */
function ignoreGone(error: unknown): void {
  if ((error as { code?: string }).code !== 'PS300') throw error;
}
