// Manifests, tags and referrers.
import { RegistryError } from './errors';
import { readBody, respond, respondWithJson, type Handler } from './exchange';
import { MANIFEST_BYTES_MAX, parseManifest } from './manifest';
import { isDigest, isTag, requireDigest } from './routes';

const TAGS_MAX = 1000;
/** The specification requires at least ten. */
const TAGS_OF_PUSH_MAX = 100;
const INDEX_TYPE = 'application/vnd.oci.image.index.v1+json';

export const getManifest: Handler = async ({ request, response, content, registry, repository }, reference) => {
  const found = await content.manifest(registry.id, repository, reference);
  if (!found) throw unknownManifest();
  const etag = `"${found.digest}"`;
  const headers = { 'Content-Type': found.media_type, 'Docker-Content-Digest': found.digest, ETag: etag };
  if (request.headers['if-none-match'] === etag) return respond(response, 304, headers);
  respond(response, 200, headers, found.content);
};

export const putManifest: Handler = async (exchange, reference) => {
  const { request, response, content, registry, name, repository, subject } = exchange;
  if (!isDigest(reference) && !isTag(reference))
    throw new RegistryError('MANIFEST_INVALID', 'The reference is neither a tag nor a digest.');
  const further = tagsOf(exchange.query, reference);
  const body = await readBody(request, MANIFEST_BYTES_MAX);
  const manifest = parseManifest(body, request.headers['content-type'], { repository, reference, further });
  const missing = await content.putManifest(registry.id, manifest, subject);
  if (missing.length) {
    throw new RegistryError('MANIFEST_BLOB_UNKNOWN', 'The manifest names content that the registry does not have.', {
      detail: missing.slice(0, 20).map((digest) => ({ digest })),
    });
  }
  respond(response, 201, {
    Location: `/v2/${name}/manifests/${manifest.digest}`,
    'Docker-Content-Digest': manifest.digest,
    ...(further.length && { 'OCI-Tag': further }),
    ...(manifest.subject !== null && { 'OCI-Subject': manifest.subject }),
  });
};

/** Tags of a push by digest (OCI Distribution 1.2, "Pushing Manifests with Tags"). */
function tagsOf(query: URLSearchParams, reference: string): string[] {
  const tags = [...new Set(query.getAll('tag'))];
  if (tags.length && !isDigest(reference))
    throw new RegistryError('MANIFEST_INVALID', '`tag` is for manifests that are pushed by their digest.');
  if (!tags.every(isTag)) throw new RegistryError('MANIFEST_INVALID', '`tag` must be a tag.');
  if (tags.length > TAGS_OF_PUSH_MAX)
    throw new RegistryError('MANIFEST_INVALID', `At most ${TAGS_OF_PUSH_MAX} tags can be pushed at once.`, {
      status: 414,
    });
  return tags;
}

export const deleteManifest: Handler = async ({ response, content, registry, repository, subject }, reference) => {
  const isDeleted = isDigest(reference)
    ? await content.deleteManifest(registry.id, repository, reference, subject)
    : await content.deleteTag(registry.id, repository, reference, subject);
  if (!isDeleted) throw unknownManifest();
  respond(response, 202);
};

export const listTags: Handler = async ({ response, query, content, registry, name, repository }) => {
  const limit = parseLimit(query.get('n'));
  const tags = limit === 0 ? [] : await content.tags(registry.id, repository, query.get('last') ?? '', limit + 1);
  if (tags === null) throw new RegistryError('NAME_UNKNOWN', 'The registry has no such repository.');
  const shown = tags.slice(0, limit);
  const next = tags.length > limit ? `/v2/${name}/tags/list?n=${limit}&last=${shown[shown.length - 1]}` : null;
  respondWithJson(response, { name, tags: shown }, next === null ? {} : { Link: `<${next}>; rel="next"` });
};

function parseLimit(text: string | null): number {
  if (text === null) return TAGS_MAX;
  if (!/^\d{1,9}$/.test(text)) throw new RegistryError('UNSUPPORTED', '`n` must be a number.', { status: 400 });
  return Math.min(Number(text), TAGS_MAX);
}

export const listReferrers: Handler = async ({ response, query, content, registry, repository }, reference) => {
  const artifactType = query.get('artifactType');
  const referrers = await content.referrers(registry.id, repository, requireDigest(reference), artifactType);
  const manifests = referrers.map(({ digest, media_type, artifact_type, annotations, size }) => ({
    ...{ mediaType: media_type, digest, size },
    ...(artifact_type !== null && { artifactType: artifact_type }),
    ...(annotations !== null && { annotations }),
  }));
  const index = { schemaVersion: 2, mediaType: INDEX_TYPE, manifests };
  respondWithJson(response, index, artifactType === null ? {} : { 'OCI-Filters-Applied': 'artifactType' }, INDEX_TYPE);
};

function unknownManifest(): RegistryError {
  return new RegistryError('MANIFEST_UNKNOWN', 'The repository has no such tag or manifest.');
}
