// The image that all releases stand on: it is taken over into the registry of the platform once, so that a registry
// elsewhere that is away, or a tag that has moved, changes nothing.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { extract } from 'tar-stream';
import { parseImageReference, manifestReferenceOf } from '../../core/protocols/image_reference';
import { DriverError, type DriverContext } from '../../core/driver';
import { replaceFile } from '../../core/files';
import { ImageError } from '../image';
import { objectOf, texts } from '../image/config';
import { decompress } from '../image/decompress';
import { contentDigest, type Descriptor } from '../image/manifest';
import { download, findManifest } from '../image/pull';
import { openRegistryClient } from '../image/registry_client';
import { readJson } from '../image/registry_token';
import { ReleaseImageError } from './failure';
import { LAYER_TYPE, type Layer } from './layer';
import { BASE_REPOSITORY, repositoryOf, uploadLayer, type ReleaseImageParts } from './store';

export interface BaseImage {
  /** Digest of its manifest in the registry of the platform. */
  digest: string;
  layers: Layer[];
  architecture: string;
  os: string;
  env: string[];
  /** Its /etc/passwd and /etc/group. */
  accounts: { passwd: string; group: string };
}

const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG_TYPE = 'application/vnd.oci.image.config.v1+json';
const ACCOUNTS = { 'etc/passwd': 'passwd', 'etc/group': 'group' } as const;
const ACCOUNTS_BYTES_MAX = 1024 * 1024;

/** @throws ReleaseImageError where there is no such image; DriverError transient where its registry does not answer */
export async function ensureBase(parts: ReleaseImageParts, ctx: DriverContext): Promise<BaseImage> {
  const { reference } = parts.base;
  const file = path.join(parts.directory, `base-${createHash('sha256').update(reference).digest('hex').slice(0, 16)}`);
  const text = await readFile(file, 'utf8').catch(() => null);
  const known = text === null ? null : (JSON.parse(text) as BaseImage);
  if (known && (await repositoryOf(parts, BASE_REPOSITORY).hasManifest(known.digest, ctx))) return known;
  const base = await takeOver(parts, ctx).catch((error: unknown) => {
    throw error instanceof ImageError
      ? new ReleaseImageError(`The base image ${reference} (\`RELEASE_BASE_IMAGE\`) cannot be used. ${error.message}`)
      : error;
  });
  await replaceFile(file, JSON.stringify(base));
  return base;
}

async function takeOver(parts: ReleaseImageParts, ctx: DriverContext): Promise<BaseImage> {
  const { reference } = parts.base;
  const access = await parts.base.access();
  const parsed = parseImageReference(reference);
  const client = openRegistryClient(access.local ? parts.unchecked : parts.outbound, parsed, access);
  const { manifest } = await findManifest(client, manifestReferenceOf(parsed), ctx);
  const staging = path.join(parts.directory, 'staging');
  await mkdir(staging, { recursive: true, mode: 0o700 });
  const target = repositoryOf(parts, BASE_REPOSITORY);
  const take = async <T>(descriptor: Descriptor, read: (file: string) => Promise<T>): Promise<T> => {
    const file = await download(client, descriptor, staging, ctx);
    try {
      const found = await read(file);
      await uploadLayer(target, descriptor, file, ctx);
      return found;
    } finally {
      await rm(file, { force: true });
    }
  };
  const config = readJson(await take(manifest.config, (file) => readFile(file)));
  const diffIds = texts(objectOf(config.rootfs).diff_ids);
  if (diffIds.length !== manifest.layers.length)
    throw new ImageError('broken', 'Its configuration names other layers than its manifest.');
  const accounts = { passwd: '', group: '' };
  for (const layer of manifest.layers)
    Object.assign(accounts, await take(layer, (file) => readAccounts(file, layer.mediaType)));
  const layers = manifest.layers.map(({ mediaType, digest, size }, i) => ({
    ...{ mediaType: ociTypeOf(mediaType), digest, size },
    diffId: diffIds[i] as string,
  }));
  const content = imageManifest({ ...manifest.config, mediaType: CONFIG_TYPE }, layers);
  const digest = contentDigest(content);
  // Tagged, since untagged manifests are garbage-collected.
  await target.putManifest(digest.replace(':', '-'), MANIFEST_TYPE, content, ctx);
  return { digest, layers, accounts, ...platformOf(config), env: texts(objectOf(config.config).Env) };
}

/** The manifest of an image, deterministic: equal inputs give equal bytes. */
export function imageManifest(config: Descriptor, layers: readonly Layer[]): Buffer {
  const descriptorOf = ({ mediaType, digest, size }: Descriptor): Descriptor => ({ mediaType, digest, size });
  return Buffer.from(
    JSON.stringify({
      ...{ schemaVersion: 2, mediaType: MANIFEST_TYPE },
      config: descriptorOf(config),
      layers: layers.map(descriptorOf),
    }),
  );
}

function platformOf({ architecture, os }: Record<string, unknown>): { architecture: string; os: string } {
  if (typeof architecture === 'string' && os === 'linux') return { architecture, os };
  throw new ImageError('broken', 'It is not an image for Linux.');
}

/** Docker layers are the same archives as OCI layers, with other media types. */
function ociTypeOf(mediaType: string): string {
  const [, kind] = /tar(?:[.+](gzip|zstd))?$/.exec(mediaType) ?? [];
  return kind === 'gzip' ? LAYER_TYPE : `application/vnd.oci.image.layer.v1.tar${kind ? `+${kind}` : ''}`;
}

/** Reads passwd and group, as far as the layer contains them. */
async function readAccounts(file: string, mediaType: string): Promise<Partial<BaseImage['accounts']>> {
  const found: Partial<BaseImage['accounts']> = {};
  const { stream, ended } = decompress(createReadStream(file, { highWaterMark: 256 * 1024 }), mediaType);
  const entries = extract();
  stream.on('error', (error) => entries.destroy(error));
  ended.catch((error: Error) => entries.destroy(error));
  stream.pipe(entries);
  try {
    for await (const entry of entries) {
      const name = entry.header.name.replace(/^(\.?\/)+/, '') as keyof typeof ACCOUNTS;
      const isWanted =
        name in ACCOUNTS && entry.header.type === 'file' && (entry.header.size ?? 0) < ACCOUNTS_BYTES_MAX;
      if (!isWanted) {
        entry.resume();
        continue;
      }
      let text = '';
      for await (const chunk of entry) text += String(chunk);
      found[ACCOUNTS[name]] = text;
    }
  } catch (error) {
    if (error instanceof DriverError) throw error;
    throw new ImageError('broken', 'A layer of it is damaged.');
  }
  return found;
}
