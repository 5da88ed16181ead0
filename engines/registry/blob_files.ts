// Layer files: one per digest, shared by all registries. A file is complete and synced before its row is committed.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncDirectory } from '../../core/files';
import { openFileCache, type OpenFile } from '../../core/files/open_files';
import { RegistryError } from './errors';

export interface BlobFiles {
  /** Size in bytes; null where there is no file. */
  size(digest: string): Promise<number | null>;
  /** A file that does not match its digest is quarantined and never served. @throws BLOB_UNKNOWN */
  open(digest: string): Promise<OpenFile>;
  /** Renames a complete and synced file to its final place. */
  place(file: string, digest: string): Promise<void>;
  remove(digest: string): Promise<void>;
  list(): AsyncIterable<string[]>;
}

export function openBlobFiles(directory: string): BlobFiles {
  const verified = new Map<string, string>();
  const files = openFileCache();
  const fileOf = (digest: string): string => {
    const [algorithm = '', hex = ''] = digest.split(':');
    return join(directory, algorithm, hex.slice(0, 2), hex);
  };
  const openVerified = async (digest: string): Promise<OpenFile> => {
    const file = fileOf(digest);
    const identity = await identityOf(file);
    if (identity === null) throw unknownBlob();
    if (verified.get(digest) !== identity) {
      files.forget(file);
      await verify(file, digest);
      if (verified.size >= VERIFIED_MAX) verified.clear();
      verified.set(digest, identity);
    }
    return files.open(file);
  };
  return {
    size: async (digest) => (await stat(fileOf(digest)).catch(() => null))?.size ?? null,
    open: openVerified,
    async place(file, digest) {
      const target = fileOf(digest);
      await mkdir(dirname(target), { recursive: true, mode: 0o700 });
      files.forget(target);
      await rename(file, target);
      await syncDirectory(dirname(target));
      const identity = await identityOf(target);
      if (identity !== null) verified.set(digest, identity);
    },
    async remove(digest) {
      verified.delete(digest);
      files.forget(fileOf(digest));
      await rm(fileOf(digest), { force: true });
    },
    list: () => listDigests(directory),
  };
}

const VERIFIED_MAX = 100_000;
const CHUNK_BYTES = 256 * 1024;

/** Changes with the file: a file that was verified once need not be hashed for each reader. */
async function identityOf(file: string): Promise<string | null> {
  const found = await stat(file, { bigint: true }).catch(() => null);
  return found && `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
}

/** @throws BLOB_UNKNOWN for a damaged file, which is kept for the operator under another name */
async function verify(file: string, digest: string): Promise<void> {
  if ((await digestOf(file, digest.slice(0, digest.indexOf(':')))) === digest) return;
  await rename(file, `${file}.damaged`).catch(() => undefined);
  throw unknownBlob();
}

/** @param algorithm sha256 or sha512 */
export async function digestOf(file: string, algorithm: string): Promise<string> {
  const hash = createHash(algorithm);
  for await (const chunk of createReadStream(file, { highWaterMark: CHUNK_BYTES })) hash.update(chunk as Buffer);
  return `${algorithm}:${hash.digest('hex')}`;
}

function unknownBlob(): RegistryError {
  return new RegistryError('BLOB_UNKNOWN', 'The registry has no layer of this digest.');
}

async function* listDigests(directory: string): AsyncIterable<string[]> {
  for (const algorithm of ['sha256', 'sha512']) {
    for (const folder of await readdir(join(directory, algorithm)).catch(() => [])) {
      const files = await readdir(join(directory, algorithm, folder)).catch(() => []);
      const digests = files.filter((file) => /^[0-9a-f]+$/.test(file)).map((file) => `${algorithm}:${file}`);
      if (digests.length) yield digests;
    }
  }
}
