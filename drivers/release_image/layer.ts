// Layers of release images: archives that are the same bytes for the same files, whenever and wherever they are made.
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { asDriverErrors, type DriverContext } from '../../core/driver';
import { tarEnd, tarHeader, tarPadding, type TarEntry } from './tar_entry';

export interface Layer {
  mediaType: string;
  /** Digest of the stored (compressed) content. */
  digest: string;
  size: number;
  /** Digest of the archive without compression, as configurations name layers. */
  diffId: string;
}

export const LAYER_TYPE = 'application/vnd.oci.image.layer.v1.tar+gzip';
/** Six is a fifth slower and a hundredth smaller. A change makes other digests of the same files. */
const LEVEL = 5;

/** Writes a layer into a file, which is not there when it fails. @throws what the entries throw; DriverError */
export async function writeLayer(
  file: string,
  entries: AsyncIterable<TarEntry> | Iterable<TarEntry>,
  { signal }: DriverContext,
): Promise<Layer> {
  const [plain, stored] = [createHash('sha256'), createHash('sha256')];
  let size = 0;
  const hashPlain = async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      plain.update(chunk);
      yield chunk;
    }
  };
  const hashStored = async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      stored.update(chunk);
      size += chunk.length;
      yield chunk;
    }
  };
  try {
    await asDriverErrors(() =>
      pipeline(
        archive(entries),
        hashPlain,
        createGzip({ level: LEVEL, chunkSize: 256 * 1024 }),
        hashStored,
        createWriteStream(file, { mode: 0o600 }),
        { signal },
      ),
    );
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  }
  const digestOf = (hash: typeof plain): string => `sha256:${hash.digest('hex')}`;
  return { mediaType: LAYER_TYPE, digest: digestOf(stored), size, diffId: digestOf(plain) };
}

async function* archive(entries: AsyncIterable<TarEntry> | Iterable<TarEntry>): AsyncGenerator<Buffer> {
  for await (const entry of entries) {
    yield tarHeader(entry);
    if (entry.content) yield* entry.content();
    if (entry.size > 0) yield tarPadding(entry.size);
  }
  yield tarEnd;
}
