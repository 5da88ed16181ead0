// Pulls images: manifest, configuration, layers that are not here yet, and the root that they make.
import { createHash, randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { manifestReferenceOf, parseImageReference, pinnedReference } from '../../core/protocols/image_reference';
import type { PulledImage } from '../../core/protocols/image_settings';
import { limits } from '../../core/limits';
import { DriverError, type DriverContext } from '../../core/driver';
import type { ImageAccess, ImageDriver, PullRequest } from '../image';
import type { Outbound } from '../../core/outbound';
import { removeTree } from '../../core/process/remove_tree';
import { isInRange, settleUser } from './accounts';
import { parseConfiguration } from './config';
import { openLayoutClient } from './layout';
import { addLayer, fileSize, findLayer, pruneLayers, type StoredLayer } from './layer_store';
import { contentDigest, broken, parseImageManifest, type Descriptor, type Manifest } from './manifest';
import type { UserRange } from './owners';
import { pushLayout } from './push';
import { openRegistryClient, type RegistryClient } from './registry_client';
import { buildRoot, completeRoot } from './root';

const CONFIG_BYTES_MAX = 4 * 1024 * 1024;
/** Indexes in indexes. */
const DEPTH_MAX = 3;
const RESUMES_MAX = 5;
/** Names an image that comes from no registry. */
const BUILT = 'localhost/built:latest';
const NO_ACCESS: ImageAccess = { credentials: null, local: null };

/** @param outbound what checks addresses; @param unchecked for the registry of this installation */
export function openImages(outbound: Outbound, unchecked: Outbound): ImageDriver {
  const clientOf = (reference: string, access: ImageAccess): RegistryClient =>
    openRegistryClient(access.local ? unchecked : outbound, parseImageReference(reference), access);
  return {
    async resolve(reference, access, ctx) {
      const wanted = manifestReferenceOf(parseImageReference(reference));
      const { content } = await clientOf(reference, access).manifest(wanted, ctx);
      return contentDigest(content);
    },
    pull: (request, ctx) => pull(clientOf(request.reference, request.access), request, ctx),
    load: ({ layout, ...request }, ctx) =>
      pull(openLayoutClient(layout), { ...request, reference: BUILT, access: NO_ACCESS }, ctx),
    push: pushLayout,
    pruneLayers,
  };
}

async function pull(client: RegistryClient, request: PullRequest, ctx: DriverContext): Promise<PulledImage> {
  const { reference, layers: store, directory } = request;
  await mkdir(store, { recursive: true, mode: 0o700 });
  const { manifest, top } = await findManifest(client, manifestReferenceOf(parseImageReference(reference)), ctx);
  const configFile = await download(client, manifest.config, store, ctx);
  const config = parseConfiguration(await readConfig(configFile, manifest.config), manifest.layers.length);
  const range = isInRange(config.user) ? request.range : null;
  await pullLayers(client, { manifest, digests: config.layers, range }, request, ctx);
  const stored = await Promise.all(config.layers.map((digest) => findLayer(store, digest, range)));
  const staging = path.join(store, `.new-${randomBytes(6).toString('hex')}`);
  try {
    await buildRoot(
      staging,
      stored.filter((layer): layer is StoredLayer => layer !== null),
      range,
    );
    await completeRoot(staging, config.settings.working_directory, range);
    const user = await settleUser(staging, config.user, range);
    // Files of several users are accessible to the runtime only.
    if (range !== null) await chmod(staging, 0o700);
    await rename(staging, directory);
    const settings = { ...config.settings, user, ...(range && { first_user_id: range.first }) };
    return { reference: pinnedReference(reference, top), digest: manifest.digest, layers: config.layers, settings };
  } catch (error) {
    await removeTree(staging).catch(() => undefined);
    throw error;
  }
}

/** @returns `top`: the digest that the reference led to, of an index where it is one */
export async function findManifest(
  client: RegistryClient,
  wanted: string,
  ctx: DriverContext,
): Promise<{ manifest: Manifest; top: string }> {
  let reference = wanted;
  let top: string | null = null;
  for (let depth = 0; depth < DEPTH_MAX; depth += 1) {
    const answer = await client.manifest(reference, ctx);
    top ??= contentDigest(answer.content);
    const found = parseImageManifest(answer, reference);
    if ('config' in found) return { manifest: found, top };
    reference = found.chosen;
  }
  throw broken('its indexes lead to further indexes');
}

async function readConfig(file: string, { size }: Descriptor): Promise<Buffer> {
  if (size > CONFIG_BYTES_MAX) throw broken('its configuration is larger than 4 MiB');
  const content = await readFile(file);
  await rm(file, { force: true });
  return content;
}

async function pullLayers(
  client: RegistryClient,
  { manifest, digests, range }: { manifest: Manifest; digests: readonly string[]; range: UserRange | null },
  { layers: store, tell }: PullRequest,
  ctx: DriverContext,
): Promise<void> {
  const room = { files: limits.imageFilesMax, bytes: limits.imageBytesMax };
  for (const [position, digest] of digests.entries()) {
    const there = await findLayer(store, digest, range);
    if (there) {
      room.files -= there.record.files;
      room.bytes -= there.record.bytes;
      continue;
    }
    const layer = manifest.layers[position] as Descriptor;
    await tell(`Layer ${position + 1} of ${digests.length}: ${formatSize(layer.size)}`);
    const file = await download(client, layer, store, ctx);
    try {
      await addLayer(store, { digest, file, mediaType: layer.mediaType }, room, range);
    } finally {
      await rm(file, { force: true });
    }
  }
}

function formatSize(bytes: number): string {
  return bytes < 1_000_000 ? `${Math.ceil(bytes / 1000)} kB` : `${Math.round(bytes / 1_000_000)} MB`;
}

/**
 * Gets a blob into a file below its digest. What an interrupted download has left is gone on with; the content is
 * verified as a whole.
 */
export async function download(
  client: RegistryClient,
  { digest, size }: Descriptor,
  store: string,
  ctx: DriverContext,
): Promise<string> {
  if (size > limits.imageBytesMax) throw broken(`it is larger than ${limits.imageBytesMax / 2 ** 20} MiB`);
  const file = path.join(store, `.blob-${digest.replace(':', '-')}`);
  for (let attempt = 0; ; attempt += 1) {
    try {
      await append(client, { digest, size }, file, ctx);
      break;
    } catch (error) {
      const isCut = error instanceof DriverError && error.reason === 'transient';
      if (!isCut || ctx.signal.aborted || attempt >= RESUMES_MAX) throw error;
    }
  }
  const algorithm = digest.slice(0, digest.indexOf(':'));
  if (`${algorithm}:${await hashOf(file, algorithm)}` === digest) return file;
  await rm(file, { force: true });
  throw broken('the registry sent a layer that is not that of its digest');
}

async function append(
  client: RegistryClient,
  { digest, size }: { digest: string; size: number },
  file: string,
  ctx: DriverContext,
): Promise<void> {
  const before = await fileSize(file);
  if (before === size && size > 0) return;
  const answer = await client.blob(digest, before < size ? before : 0, ctx);
  try {
    const handle = await open(file, answer.from > 0 ? 'a' : 'w', 0o600);
    let total = answer.from;
    try {
      for await (const chunk of answer.response) {
        total += (chunk as Buffer).length;
        if (total > size) throw broken('the registry sent more than the manifest says');
        await handle.write(chunk as Buffer);
      }
    } catch (error) {
      throw (error as Error).name === 'ImageError' ? error : cut();
    } finally {
      await handle.close();
    }
    if (total < size) throw cut();
  } finally {
    answer.close();
  }
}

function cut(): DriverError {
  return new DriverError('transient', 'The registry closed the connection before a layer was complete.');
}

async function hashOf(file: string, algorithm: string): Promise<string> {
  const hash = createHash(algorithm);
  const handle = await open(file, 'r');
  for await (const chunk of handle.createReadStream({ highWaterMark: 256 * 1024 })) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
