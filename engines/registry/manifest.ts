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
const SCHEMA_1 = 'Images of schema 1 are not accepted: push with a newer client.';
/** Manifests that are not taken: a client that pushes one learns what to do. */
const REFUSED = new Map([
  ['application/vnd.docker.distribution.manifest.v1+json', SCHEMA_1],
  ['application/vnd.docker.distribution.manifest.v1+prettyjws', SCHEMA_1],
  [
    'application/vnd.oci.artifact.manifest.v1+json',
    'Artifact manifests were left out of OCI 1.1: push an image manifest with `artifactType`.',
  ],
]);
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
  const subject = isAbsent(json.subject) ? null : (digestsOf([json.subject as Descriptor])[0] ?? null);
  return {
    ...{ repository, digest, media_type, content, subject },
    ...(INDEXES.includes(media_type) ? contentOfIndex(json) : { blobs: blobsOf(json), manifests: [] }),
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
  const refusal = REFUSED.get(type);
  if (refusal !== undefined) throw invalid(refusal);
  if (schemaVersion === 1) throw invalid(SCHEMA_1);
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

/**
 * What an index names is pushed as a manifest only where its media type says so. The cache that BuildKit exports before
 * 0.21 is an index of layers and a configuration (github.com/moby/buildkit/issues/2251).
 */
function contentOfIndex({ manifests }: Record<string, unknown>): Pick<ManifestInput, 'blobs' | 'manifests'> {
  // Go writes an empty list as null.
  const all = manifests === null ? [] : listOf(manifests, 'manifests');
  const isBlob = (one: Descriptor | null | undefined): boolean =>
    typeof one?.mediaType === 'string' && ![...IMAGES, ...INDEXES].includes(one.mediaType);
  return {
    manifests: digestsOf(all.filter((one) => !isBlob(one))),
    blobs: digestsOf(all.filter((one) => isBlob(one) && isPushed(one))),
  };
}

function blobsOf({ config, layers }: Record<string, unknown>): string[] {
  const all = [config as Descriptor, ...listOf(layers ?? [], 'layers')];
  return digestsOf(all.filter(isPushed));
}

function isPushed(descriptor: Descriptor | null | undefined): boolean {
  return typeof descriptor?.mediaType !== 'string' || !FOREIGN.test(descriptor.mediaType);
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
  if (isAbsent(value)) return null;
  const isMap =
    typeof value === 'object' &&
    !Array.isArray(value) &&
    Object.values(value).every((text) => typeof text === 'string' && !text.includes('\u0000'));
  if (!isMap) throw invalid('`annotations` must be an object of strings.');
  return value as Record<string, string>;
}

/** A field without a value: some clients write null. */
function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

function invalid(message: string): RegistryError {
  return new RegistryError('MANIFEST_INVALID', message);
}
