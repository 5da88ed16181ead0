// What a registry server finds and changes: manifests, tags, and which layers a registry has. The counts of a registry
// change in the transaction of what they count.
import type {
  ManifestInput,
  Referrer,
  RegistryContent,
  ServedRegistry,
  StoredManifest,
} from '../../../core/protocols/registry_content';
import type { Sql } from '../../../core/context';
import { mintId } from '../../../core/ids';
import type { Session } from '../../../db/control_database';
import { named, quick } from '../../../db/statement';
import { recordImageChange } from './audit';
import {
  addBlob,
  COUNT,
  deleteBlob,
  END_UPLOAD,
  findBlob,
  ifBlobUnused,
  LOCK_REGISTRY,
  type LockedRegistry,
} from './blobs';
import { wakeFollowers } from './followers';
import { PLATFORM_PROJECT } from './platform_name';
import { RegistryImage } from '../registry_image';

const UPLOAD_PREFIX = 'rup';
const FIND = quick(
  `select id, project_id, size_bytes, project_id = '${PLATFORM_PROJECT}' as is_own from registries
    where name = $1 and deleted_at is null`,
);
const ADOPT_BLOBS = named(
  `insert into registry_blobs (registry_id, digest, size_bytes) select $1, digest, size_bytes
    from unnest($2::text[], $3::bigint[]) as given (digest, size_bytes)
    on conflict (registry_id, digest) do nothing returning size_bytes`,
);
const ALL_TAGS = named('select repository, tag, digest from registry_tags where registry_id = $1');
const UNTAGGED = named(
  `select repository, digest from registry_manifests m where registry_id = $1 and untagged_at is not null
    and not exists (select from registry_references r
      where r.registry_id = m.registry_id and r.target = m.digest and r.repository = m.repository)`,
);

const START_UPLOAD = named('insert into registry_uploads (id, registry_id, repository) values ($1, $2, $3)');
const UPLOAD = quick('select 1 from registry_uploads where id = $1 and registry_id = $2 and repository = $3');

const MANIFEST_BY_DIGEST = quick(
  `select digest, media_type, content from registry_manifests
    where registry_id = $1 and repository = $2 and digest = $3`,
);
const MANIFEST_BY_TAG = quick(
  `select m.digest, m.media_type, m.content from registry_tags t join registry_manifests m
    on m.registry_id = t.registry_id and m.repository = t.repository and m.digest = t.digest
    where t.registry_id = $1 and t.repository = $2 and t.tag = $3`,
);
const TAGS = named(
  'select tag from registry_tags where registry_id = $1 and repository = $2 and tag > $3 order by tag limit $4',
);
const HAS_MANIFESTS = named('select 1 from registry_manifests where registry_id = $1 and repository = $2 limit 1');
const REFERRERS = named(
  `select digest, media_type, artifact_type, annotations, length(content) as size from registry_manifests
    where registry_id = $1 and repository = $2 and subject = $3 and ($4::text is null or artifact_type = $4)
    order by digest`,
);
const DELETE_MANIFEST = named(
  `delete from registry_manifests where registry_id = $1 and repository = $2 and digest = $3
    returning length(content) as size`,
);
const DELETE_TAGS_OF = named(
  'delete from registry_tags where registry_id = $1 and repository = $2 and digest = $3 returning tag',
);
const DELETE_TAG = named(
  'delete from registry_tags where registry_id = $1 and repository = $2 and tag = $3 returning digest',
);
const MARK_UNTAGGED = named(
  `update registry_manifests m set untagged_at = now()
    where registry_id = $1 and repository = $2 and digest = $3 and not exists (select from registry_tags t
      where t.registry_id = m.registry_id and t.repository = m.repository and t.digest = m.digest)`,
);

const SIZES = named(
  'select digest, size_bytes from registry_blobs where registry_id = $1 and digest = any($2) for share',
);
const CHILDREN = named(
  `select digest, size_bytes from registry_manifests where registry_id = $1 and repository = $2 and digest = any($3)
    for share`,
);
const PUT_MANIFEST = named(
  `insert into registry_manifests (registry_id, repository, digest, media_type, artifact_type, subject, annotations,
      content, size_bytes)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict (registry_id, repository, digest) do nothing
    returning digest`,
);
const PUT_REFERENCES = named(
  `insert into registry_references (registry_id, repository, digest, target)
    select $1, $2, $3, unnest($4::text[]) on conflict do nothing`,
);
const OLD_TAG = named('select digest from registry_tags where registry_id = $1 and repository = $2 and tag = $3');
const PUT_TAG = named(
  `insert into registry_tags (id, project_id, registry_id, repository, tag, digest, media_type, size_bytes, pushed_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, now())
    on conflict (registry_id, repository, tag) do update set digest = excluded.digest, media_type = excluded.media_type,
      size_bytes = excluded.size_bytes, pushed_at = excluded.pushed_at
    returning xmax = 0 as is_new`,
);
const MARK_TAGGED = named(
  'update registry_manifests set untagged_at = null where registry_id = $1 and repository = $2 and digest = $3',
);

export function registryContent(database: Session): RegistryContent {
  const alone = <T>(work: (sql: Session) => Promise<T>): Promise<T> => database.transaction(work);
  return {
    find: async (name) => (await database.query<ServedRegistry>(FIND, [name]))[0] ?? null,
    blob: (registryId, digest) => findBlob(database, registryId, digest),
    addBlob: (registryId, blob, place) => alone((sql) => addBlob(sql, registryId, blob, place)),
    deleteBlob: (registryId, digest) => alone((sql) => deleteBlob(sql, registryId, digest)),
    ifUnused: (digest, remove) => alone((sql) => ifBlobUnused(sql, digest, remove)),
    async startUpload(registryId, repository) {
      const id = mintId(UPLOAD_PREFIX);
      await database.query(START_UPLOAD, [id, registryId, repository]);
      return id;
    },
    hasUpload: async (registryId, repository, upload) =>
      (await database.query(UPLOAD, [upload, registryId, repository])).length > 0,
    endUpload: async (upload) => void (await database.query(END_UPLOAD, [upload])),
    putManifest: (registryId, manifest, subject) => alone((sql) => putManifest(sql, registryId, manifest, subject)),
    adoptManifest: (registryId, manifest, sizes, subject) =>
      alone((sql) => adoptManifest(sql, registryId, manifest, sizes, subject)),
    allTags: (registryId) => database.query(ALL_TAGS, [registryId]),
    untaggedManifests: (registryId) => database.query(UNTAGGED, [registryId]),
    async manifest(registryId, repository, reference) {
      const statement = reference.includes(':') ? MANIFEST_BY_DIGEST : MANIFEST_BY_TAG;
      return (await database.query<StoredManifest>(statement, [registryId, repository, reference]))[0] ?? null;
    },
    deleteManifest: (registryId, repository, digest, subject) =>
      alone((sql) => deleteManifest(sql, registryId, { repository, digest, subject })),
    deleteTag: (registryId, repository, tag, subject) =>
      alone((sql) => deleteTag(sql, registryId, { repository, tag, subject })),
    async tags(registryId, repository, last, limit) {
      const rows = await database.query<{ tag: string }>(TAGS, [registryId, repository, last, limit]);
      if (!rows.length && !(await database.query(HAS_MANIFESTS, [registryId, repository])).length) return null;
      return rows.map(({ tag }) => tag);
    },
    referrers: (registryId, repository, digest, artifactType) =>
      database.query<Referrer>(REFERRERS, [registryId, repository, digest, artifactType]),
  };
}

interface Sized {
  digest: string;
  size_bytes: number;
}

async function putManifest(
  sql: Sql,
  registryId: string,
  manifest: ManifestInput,
  subject: string | null,
): Promise<string[]> {
  const { repository, digest, media_type, content, tags, blobs, manifests } = manifest;
  const [registry] = await sql.query<LockedRegistry>(LOCK_REGISTRY, [registryId]);
  if (!registry) return [digest];
  const found = [
    ...(await sql.query<Sized>(SIZES, [registryId, blobs])),
    ...(await sql.query<Sized>(CHILDREN, [registryId, repository, manifests])),
  ];
  const known = new Set(found.map((one) => one.digest));
  const targets = [...blobs, ...manifests];
  const missing = targets.filter((target) => !known.has(target));
  if (missing.length) return missing;
  const size = found.reduce((sum, { size_bytes }) => sum + size_bytes, content.length);
  const inserted = await sql.query(PUT_MANIFEST, [
    ...[registryId, repository, digest, media_type, manifest.artifact_type, manifest.subject],
    ...[manifest.annotations && JSON.stringify(manifest.annotations), content, size],
  ]);
  await sql.query(PUT_REFERENCES, [registryId, repository, digest, targets]);
  const images = tags.length || !inserted.length ? [] : [`${repository}@${digest}`];
  let added = 0;
  for (const tag of tags) {
    const moved = await putTag(sql, registry.project_id, registryId, { ...manifest, tag, size });
    await wakeFollowers(sql, registry, repository, tag);
    if (moved === 'new') added += 1;
    if (inserted.length || moved !== 'same') images.push(`${repository}:${tag}`);
  }
  const counted = [inserted.length ? content.length : 0, added];
  if (counted.some((count) => count)) await sql.query(COUNT, [registryId, ...counted]);
  for (const image of images) await recordImageChange(sql, { registry, action: 'image_pushed', image, subject });
  return [];
}

/** What another server has taken: the layers are there, only their rows are not. */
async function adoptManifest(
  sql: Sql,
  registryId: string,
  manifest: ManifestInput,
  sizes: ReadonlyMap<string, number>,
  subject: string | null,
): Promise<void> {
  if (!(await sql.query(LOCK_REGISTRY, [registryId])).length) return;
  const given = manifest.blobs.map((digest) => [digest, sizes.get(digest) ?? 0] as const);
  const columns = [given.map(([digest]) => digest), given.map(([, size]) => size)];
  const added = await sql.query<{ size_bytes: number }>(ADOPT_BLOBS, [registryId, ...columns]);
  const more = added.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  if (more) await sql.query(COUNT, [registryId, more, 0]);
  await putManifest(sql, registryId, manifest, subject);
}

async function putTag(
  sql: Sql,
  projectId: string,
  registryId: string,
  {
    repository,
    tag,
    digest,
    media_type,
    size,
  }: Pick<ManifestInput, 'repository' | 'digest' | 'media_type'> & {
    tag: string;
    size: number;
  },
): Promise<'new' | 'moved' | 'same'> {
  const [old] = await sql.query<{ digest: string }>(OLD_TAG, [registryId, repository, tag]);
  const id = mintId(RegistryImage.idPrefix);
  const values = [id, projectId, registryId, repository, tag, digest, media_type, size];
  const [row] = await sql.query<{ is_new: boolean }>(PUT_TAG, values);
  await sql.query(MARK_TAGGED, [registryId, repository, digest]);
  if (old && old.digest !== digest) await sql.query(MARK_UNTAGGED, [registryId, repository, old.digest]);
  if (row?.is_new) return 'new';
  return old?.digest === digest ? 'same' : 'moved';
}

interface Deleted {
  repository: string;
  subject: string | null;
}

async function deleteManifest(
  sql: Sql,
  registryId: string,
  { repository, digest, subject }: Deleted & { digest: string },
): Promise<boolean> {
  const [registry] = await sql.query<LockedRegistry>(LOCK_REGISTRY, [registryId]);
  const tags = await sql.query<{ tag: string }>(DELETE_TAGS_OF, [registryId, repository, digest]);
  const [row] = await sql.query<{ size: number }>(DELETE_MANIFEST, [registryId, repository, digest]);
  if (!row || !registry) return false;
  await sql.query(COUNT, [registryId, -row.size, -tags.length]);
  const images = tags.length ? tags.map(({ tag }) => `${repository}:${tag}`) : [`${repository}@${digest}`];
  for (const image of images) await recordImageChange(sql, { registry, action: 'image_deleted', image, subject });
  return true;
}

async function deleteTag(
  sql: Sql,
  registryId: string,
  { repository, tag, subject }: Deleted & { tag: string },
): Promise<boolean> {
  const [registry] = await sql.query<LockedRegistry>(LOCK_REGISTRY, [registryId]);
  const [row] = await sql.query<{ digest: string }>(DELETE_TAG, [registryId, repository, tag]);
  if (!row || !registry) return false;
  await sql.query(MARK_UNTAGGED, [registryId, repository, row.digest]);
  await sql.query(COUNT, [registryId, 0, -1]);
  await recordImageChange(sql, { registry, action: 'image_deleted', image: `${repository}:${tag}`, subject });
  return true;
}
