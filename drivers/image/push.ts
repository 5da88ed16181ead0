// Pushes an image that a build has left in a directory (layout.ts) to the registry of this installation. The registry
// verifies uploads by digest; layers that it already has are not sent.
import type { DriverContext } from '../../core/driver';
import type { PushRequest } from '../image';
import { openLayoutClient } from './layout';
import { broken, parseImageManifest } from './manifest';
import { openRepository } from './repository';

/** A layout holds one image and ignores the tag, but its client requires one. */
const ANY = 'latest';

/** May be repeated. @throws ImageError, DriverError transient */
export async function pushLayout({ layout, repository, tag, access }: PushRequest, ctx: DriverContext): Promise<void> {
  const client = openLayoutClient(layout);
  const { content, mediaType } = await client.manifest(ANY, ctx);
  const manifest = parseImageManifest({ content, mediaType }, ANY);
  if (!('config' in manifest)) throw broken('the build left an index');
  const target = openRepository(repository, access);
  for (const { digest } of [manifest.config, ...manifest.layers]) {
    if (await target.hasBlob(digest, ctx)) continue;
    const { response } = await client.blob(digest, 0, ctx);
    await target.upload(digest, response, ctx);
  }
  await target.putManifest(tag, mediaType, content, ctx);
}
