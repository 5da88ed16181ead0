// Manifests: OCI images and indexes (image-spec), and Docker schema 2, which has the same structure.
import { createHash } from 'node:crypto';
import type { ManifestInput } from '../../core/protocols/registry_content';
import { RegistryError } from './errors';
import { isDigest } from './routes';

export const MANIFEST_BYTES_MAX = 4 * 1024 * 1024;

const IMAGES = ['application/vnd.oci.image.manifest.v1+json', 'application/vnd.docker.distribution.manifest.v2+json'];
const INDEXES = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
];
/** Layers that are not pushed (image-spec, "Non-distributable layers"; Docker foreign layers). */
const FOREIGN = /nondistributable|foreign/;
const DESCRIPTORS_MAX = 10_000;

interface Descriptor {
  mediaType?: unknown;
  digest?: unknown;
}

/** @throws MANIFEST_INVALID, DIGEST_INVALID where the reference is another digest */
export function parseManifest(
  content: Buffer,
  contentType: string | undefined,
  { repository, reference, further = [] }: { repository: string; reference: string; further?: string[] },
): ManifestInput {
  const json = parseObject(content);
  const media_type = mediaTypeOf(json, contentType);
  const digest = digestFor(content, reference);
  const isIndex = INDEXES.includes(media_type);
  const blobs = isIndex ? [] : blobsOf(json);
  const manifests = isIndex ? digestsOf(listOf(json.manifests, 'manifests')) : [];
  const subject = json.subject === undefined ? null : (digestsOf([json.subject as Descriptor])[0] ?? null);
  return {
    ...{ repository, digest, media_type, content, blobs, manifests, subject },
    artifact_type: artifactTypeOf(json),
    annotations: annotationsOf(json.annotations),
    tags: isDigest(reference) ? further : [reference],
  };
}

function parseObject(content: Buffer): Record<string, unknown> {
  try {
    const json = JSON.parse(content.toString('utf8')) as unknown;
    if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json as Record<string, unknown>;
  } catch {
    // Invalid JSON: see below.
  }
  throw invalid('The manifest is not a JSON object.');
}

function mediaTypeOf({ schemaVersion, mediaType }: Record<string, unknown>, contentType: string | undefined): string {
  const sent = contentType?.split(';')[0]?.trim().toLowerCase() ?? '';
  const type = sent || (typeof mediaType === 'string' ? mediaType : '');
  if (schemaVersion !== 2) throw invalid('`schemaVersion` must be 2.');
  if (typeof mediaType === 'string' && mediaType !== type)
    throw invalid('`mediaType` differs from the header Content-Type.');
  if (![...IMAGES, ...INDEXES].includes(type)) throw invalid(`The media type ${type.slice(0, 100)} is not supported.`);
  return type;
}

function digestFor(content: Buffer, reference: string): string {
  const algorithm = isDigest(reference) ? reference.slice(0, reference.indexOf(':')) : 'sha256';
  const digest = `${algorithm}:${createHash(algorithm).update(content).digest('hex')}`;
  if (isDigest(reference) && digest !== reference)
    throw new RegistryError('DIGEST_INVALID', 'The digest in the path is not that of the manifest.');
  return digest;
}

function blobsOf({ config, layers }: Record<string, unknown>): string[] {
  const all = [config as Descriptor, ...listOf(layers ?? [], 'layers')];
  return digestsOf(all.filter(({ mediaType } = {}) => typeof mediaType !== 'string' || !FOREIGN.test(mediaType)));
}

function listOf(value: unknown, name: string): Descriptor[] {
  if (Array.isArray(value) && value.length <= DESCRIPTORS_MAX) return value as Descriptor[];
  throw invalid(`\`${name}\` must be a list of at most ${DESCRIPTORS_MAX} descriptors.`);
}

function digestsOf(descriptors: (Descriptor | null | undefined)[]): string[] {
  const digests = descriptors.map((descriptor) => descriptor?.digest);
  if (digests.some((digest) => typeof digest !== 'string' || !isDigest(digest)))
    throw invalid('A descriptor has no valid digest.');
  return [...new Set(digests as string[])];
}

/** artifactType for the referrers API: images without one use the media type of their config. */
function artifactTypeOf({ artifactType, config }: Record<string, unknown>): string | null {
  if (typeof artifactType === 'string' && artifactType) return artifactType;
  const type = (config as Descriptor | undefined)?.mediaType;
  return typeof type === 'string' ? type : null;
}

function annotationsOf(value: unknown): Record<string, string> | null {
  if (value === undefined || value === null) return null;
  const isMap =
    typeof value === 'object' &&
    !Array.isArray(value) &&
    Object.values(value).every((text) => typeof text === 'string' && !text.includes('\u0000'));
  if (!isMap) throw invalid('`annotations` must be an object of strings.');
  return value as Record<string, string>;
}

function invalid(message: string): RegistryError {
  return new RegistryError('MANIFEST_INVALID', message);
}
