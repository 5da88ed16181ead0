// Existing images: an application's image from a registry, or the result of a Dockerfile. They are copied unchanged to
// the registry of the platform, with the same digest.
import type { DriverContext } from '../../core/driver';
import { parseImageReference } from '../../core/protocols/image_reference';
import { ImageError } from '../image';
import { openLayoutClient } from '../image/layout';
import { parseImageManifest } from '../image/manifest';
import { openRegistryClient, type RegistryClient } from '../image/registry_client';
import type { CopyRequest, PublishedImage } from '../release_image';
import { ReleaseImageError } from './failure';
import { repositoryOf, type ReleaseImageParts } from './store';

export async function copyImage(
  parts: ReleaseImageParts,
  request: CopyRequest,
  ctx: DriverContext,
): Promise<PublishedImage> {
  try {
    return await copy(parts, request, ctx);
  } catch (error) {
    throw error instanceof ImageError ? new ReleaseImageError(error.message) : error;
  }
}

async function copy(parts: ReleaseImageParts, request: CopyRequest, ctx: DriverContext): Promise<PublishedImage> {
  const { digest } = request;
  const image = { repository: `${parts.registry}/${request.repository}`, digest };
  const target = repositoryOf(parts, request.repository);
  const client = clientOf(parts, request);
  // A rollback: the image is here, also where it has gone from its registry.
  const source = (await target.hasManifest(digest, ctx)) ? ownClient(parts, image) : client;
  const { content, mediaType } = await source.manifest(digest, ctx);
  const manifest = parseImageManifest({ content, mediaType }, digest);
  if (!('config' in manifest)) throw new ImageError('broken', 'The image cannot be used: it is an index.');
  for (const blob of [manifest.config, ...manifest.layers]) {
    if (await target.hasBlob(blob.digest, ctx)) continue;
    const { response, close } = await client.blob(blob.digest, 0, ctx);
    await target.upload(blob.digest, response, ctx).finally(close);
  }
  await request.announce(image);
  await target.putManifest(request.tag, mediaType, content, ctx);
  return image;
}

function clientOf(parts: ReleaseImageParts, { from }: CopyRequest): RegistryClient {
  if ('layout' in from) return openLayoutClient(from.layout);
  const outbound = from.access.local ? parts.unchecked : parts.outbound;
  return openRegistryClient(outbound, parseImageReference(from.reference), from.access);
}

function ownClient(parts: ReleaseImageParts, { repository, digest }: PublishedImage): RegistryClient {
  const local = parts.access([{ type: 'repository', name: repository, actions: ['pull'] }]);
  const reference = { host: new URL(local.url).host, repository, tag: null, digest };
  return openRegistryClient(parts.unchecked, reference, { credentials: null, local });
}
