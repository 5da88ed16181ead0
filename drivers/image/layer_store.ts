// Unpacked layers of one application, each below the digest of its content: `<hex>/files` and `<hex>/layer.json`. A
// layer is filled under a temporary name and renamed when it is whole.
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { PassThrough } from 'node:stream';
import { removeTree } from '../../core/process/remove_tree';
import { asDriverErrors, isDiskFull } from '../../core/driver';
import { decompress } from './decompress';
import { broken } from './manifest';
import { rangeName, type UserRange } from './owners';
import { unpackLayer, type LayerRecord, type Room } from './unpack';

export interface StoredLayer {
  /** Its files on the host. */
  files: string;
  record: LayerRecord;
}

const STAGING = '.new-';

/** null if the layer is not in the store, or if its files were unpacked for another user-id range than `range`. */
export async function findLayer(store: string, digest: string, range: UserRange | null): Promise<StoredLayer | null> {
  const directory = path.join(store, nameOf(digest));
  const text = await readFile(path.join(directory, 'layer.json'), 'utf8').catch(() => null);
  if (text === null) return null;
  const record = JSON.parse(text) as LayerRecord;
  if (record.range !== (range === null ? undefined : rangeName(range))) return null;
  return { files: path.join(directory, 'files'), record };
}

/** A layer in a file, compressed or not. */
interface PackedLayer {
  /** Digest of the uncompressed content. */
  digest: string;
  file: string;
  mediaType: string;
}

/**
 * Unpacks a layer. @param range owners of its files
 * @throws ImageError if the content does not match the digest, or is no layer
 */
export async function addLayer(store: string, layer: PackedLayer, room: Room, range: UserRange | null): Promise<void> {
  const { digest } = layer;
  const staging = path.join(store, `${STAGING}${randomBytes(6).toString('hex')}`);
  try {
    const record = await asDriverErrorsOfDisk(async () => {
      await mkdir(path.join(staging, 'files'), { recursive: true, mode: 0o700 });
      return unpackVerified(path.join(staging, 'files'), layer, room, range);
    });
    await writeFile(path.join(staging, 'layer.json'), JSON.stringify(record), { mode: 0o600 });
    await removeTree(path.join(store, nameOf(digest)));
    await rename(staging, path.join(store, nameOf(digest)));
  } catch (error) {
    await removeTree(staging).catch(() => undefined);
    throw error;
  }
}

async function unpackVerified(
  directory: string,
  { digest, file, mediaType }: PackedLayer,
  room: Room,
  range: UserRange | null,
): Promise<LayerRecord> {
  const hash = createHash(digest.slice(0, digest.indexOf(':')));
  const { stream, ended } = decompress(createReadStream(file, { highWaterMark: 256 * 1024 }), mediaType);
  const tar = new PassThrough({ highWaterMark: 256 * 1024 });
  const hashed = pipeline(
    stream,
    async function* (source: AsyncIterable<Buffer>) {
      for await (const chunk of source) {
        hash.update(chunk);
        yield chunk;
      }
    },
    tar,
  );
  hashed.catch(() => undefined);
  ended.catch(() => undefined);
  try {
    const record = await unpackLayer(tar, directory, room, range);
    // An archive may end before its stream does.
    tar.resume();
    await hashed;
    await ended;
    if (`${digest.slice(0, digest.indexOf(':'))}:${hash.digest('hex')}` !== digest)
      throw broken('the content of a layer is not that of its digest');
    return record;
  } finally {
    stream.destroy();
    tar.destroy();
  }
}

/** Removes layers that are none of `kept`, and what interrupted pulls have left. */
export async function pruneLayers(store: string, kept: ReadonlySet<string>): Promise<void> {
  const names = new Set([...kept].map(nameOf));
  for (const name of await readdir(store).catch(() => [])) {
    if (!names.has(name)) await removeTree(path.join(store, name));
  }
}

export async function fileSize(file: string): Promise<number> {
  return (await stat(file).catch(() => null))?.size ?? 0;
}

function nameOf(digest: string): string {
  return digest.replace(':', '-');
}

/** Reports a full disk as a DriverError; rethrows all other errors. */
async function asDriverErrorsOfDisk<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isDiskFull(error)) return asDriverErrors(() => Promise.reject(error as Error));
    throw error;
  }
}
