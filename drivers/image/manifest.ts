// Manifests and configurations of images: OCI, and Docker's schema 2, which has the same shape.
import { createHash } from 'node:crypto';
import { limits } from '../../core/limits';
import { ImageError } from '../image';
import { readJson } from './registry_token';

export interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

export interface Manifest {
  digest: string;
  config: Descriptor;
  layers: Descriptor[];
}

/** The entry of an index for this host: the digest of a manifest. */
interface Index {
  chosen: string;
}

const INDEXES = /(image\.index\.v1|manifest\.list\.v2)\+json$/;
const IMAGES = /(image\.manifest\.v1|distribution\.manifest\.v2)\+json$/;
const LAYERS =
  /^application\/vnd\.(oci\.image\.layer\.v1\.tar(\+gzip|\+zstd)?|docker\.image\.rootfs\.diff\.tar(\.gzip|\.zstd)?)$/;

/** @throws ImageError */
export function parseImageManifest(
  { content, mediaType }: { content: Buffer; mediaType: string },
  wanted: string,
): Manifest | Index {
  const digest = digestFor(content, wanted);
  const json = readJson(content);
  const type = typeof json.mediaType === 'string' ? json.mediaType : mediaType;
  if (json.schemaVersion === 2 && INDEXES.test(type)) return { chosen: chooseManifest(json.manifests) };
  if (json.schemaVersion !== 2 || !IMAGES.test(type))
    throw broken(`its manifest is of the type \`${type.slice(0, 100)}\`, which is not an image`);
  const layers = listOf(json.layers).map(descriptorOf);
  if (layers.length > limits.imageLayersMax) throw broken(`it has more than ${limits.imageLayersMax} layers`);
  const foreign = layers.find((layer) => !LAYERS.test(layer.mediaType));
  if (foreign) throw broken(`a layer is of the type \`${foreign.mediaType.slice(0, 100)}\``);
  return { digest, config: descriptorOf(json.config), layers };
}

/** @throws ImageError if the content does not match the digest */
function digestFor(content: Buffer, wanted: string): string {
  const algorithm = /^(sha256|sha512):/.exec(wanted)?.[1] ?? 'sha256';
  const digest = `${algorithm}:${createHash(algorithm).update(content).digest('hex')}`;
  if (wanted.includes(':') && digest !== wanted) throw broken('its manifest is not that of its digest');
  return digest;
}

/** Go's names of processor architectures, by Node.js's names. */
const ARCHITECTURES: Record<string, string> = { x64: 'amd64', ia32: '386', arm64: 'arm64', arm: 'arm' };

/** The first manifest for this host: an index is ordered by preference. */
function chooseManifest(value: unknown): string {
  const architecture = ARCHITECTURES[process.arch] ?? process.arch;
  const all = listOf(value).map((entry) => ({ ...descriptorOf(entry), platform: platformOf(entry) }));
  const found = all.find(({ platform }) => platform?.os === 'linux' && platform.architecture === architecture);
  if (found) return found.digest;
  const offered = all.flatMap(({ platform }) => (platform ? [`${platform.os}/${platform.architecture}`] : []));
  const names = [...new Set(offered)].filter((name) => name !== 'unknown/unknown').slice(0, 10);
  throw new ImageError(
    'missing',
    `The image has no variant for linux/${architecture}, the platform of this host. Its variants: ` +
      `${names.length ? names.join(', ') : 'none'}.`,
  );
}

function platformOf(entry: unknown): { os: string; architecture: string } | null {
  const { platform } = entry as { platform?: { os?: unknown; architecture?: unknown } };
  const { os, architecture } = platform ?? {};
  const isName = (value: unknown): value is string => typeof value === 'string' && /^[\w.-]{1,30}$/.test(value);
  return isName(os) && isName(architecture) ? { os, architecture } : null;
}

function listOf(value: unknown): unknown[] {
  if (Array.isArray(value) && value.length <= 1000) return value as unknown[];
  throw broken('its manifest has no valid list of descriptors');
}

function descriptorOf(value: unknown): Descriptor {
  const { mediaType, digest, size } = (value ?? {}) as Record<string, unknown>;
  const isDigest = typeof digest === 'string' && /^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/.test(digest);
  if (typeof mediaType !== 'string' || !isDigest || !Number.isSafeInteger(size) || (size as number) < 0)
    throw broken('its manifest has a descriptor that is not valid');
  return { mediaType, digest, size: size as number };
}

/** @param why continues “The image cannot be used: …” */
export function broken(why: string): ImageError {
  return new ImageError('broken', `The image cannot be used: ${why}.`);
}

/** `sha256:` and the hash in hex, as registries name content (image-spec, "Digests"). */
export function contentDigest(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}
