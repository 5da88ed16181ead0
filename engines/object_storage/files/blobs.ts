// Files of objects: written once, synced together with their directory before they are acknowledged. Their content
// never changes.
import { createHash, randomBytes } from 'node:crypto';
import { link, mkdir, open, readdir, stat, unlink } from 'node:fs/promises';
import path from 'node:path';
import { releaseMemory } from '../../../core/process/release_memory';
import { absentIsNull, syncDirectory } from '../../../core/files';
import type { SecretBox } from '../../../core/secrets';
import { newEncryption, openEncrypted, reencryptFileKey, type Encryption, type Seals } from '../settings/encryption';
import { openFileCache, type OpenFile } from '../../../core/files/open_files';
import { openWriteBehind } from '../../../core/files/write_behind';

const FILE_ID = /^[0-9a-f]{32}$/;
const ID_BYTES = 16;

export interface Written {
  fileId: string;
  size: number;
  /** Hexadecimal. */
  md5: string;
}

/** Observes each piece and the final MD5. An exception prevents the acknowledgement of the file. */
interface Watch {
  piece(piece: Buffer): void;
  end(md5: string): void;
}

/** Encryption of a file: with the key of the installation, or with a key of a client. */
export type Encrypted = 'AES256' | Buffer | null | undefined;

const customerKeyIn = (encryption: Encrypted): Buffer | null => (Buffer.isBuffer(encryption) ? encryption : null);

export interface BlobStore {
  /** Writes the content; durable once it resolves. Leaves no file if it or `content` throws. */
  write(bucketId: string, content: AsyncIterable<Buffer>, watch?: Watch, encryption?: Encrypted): Promise<Written>;
  /** Hard-links the content, possibly into another bucket. */
  copy(from: { bucketId: string; fileId: string }, toBucketId: string): Promise<string>;
  /** @param encryption as at the time of the write @throws ENOENT where the file was removed */
  open(bucketId: string, fileId: string, encryption: Encrypted): Promise<OpenFile>;
  /** A missing file is success. */
  remove(bucketId: string, fileId: string): Promise<void>;
  /** Files without a write for this long, in batches. */
  idle(olderThanMs: number): AsyncIterable<{ bucketId: string; fileId: string }[]>;
}

/** @param seals encrypt the keys of encrypted files */
export function openBlobStore(root: string, seals: Seals): BlobStore {
  const { place, create, forget, sync } = openDirectories(root);
  const files = openFileCache();
  const remove = (bucketId: string, fileId: string): Promise<void> => {
    files.forget(place(bucketId, fileId));
    return unlink(place(bucketId, fileId)).catch(ignoreAbsent);
  };
  return {
    async write(bucketId, content, watch, encryption) {
      const { fileId, directory } = await create(bucketId);
      try {
        const written = await writeFile(place(bucketId, fileId), () => sync(directory), content, {
          watch,
          encryption: encryption ? newEncryption(seals, customerKeyIn(encryption)) : null,
        }).catch((error: NodeJS.ErrnoException) => {
          // The bucket was removed, including its directory.
          if (error.code === 'ENOENT') forget(directory);
          throw error;
        });
        return { fileId, ...written };
      } catch (error) {
        await remove(bucketId, fileId);
        throw error;
      }
    },
    async copy(from, toBucketId) {
      const { fileId, directory } = await create(toBucketId);
      await link(place(from.bucketId, from.fileId), place(toBucketId, fileId));
      await sync(directory);
      return fileId;
    },
    async open(bucketId, fileId, encryption) {
      const file = await files.open(place(bucketId, fileId));
      if (!encryption) return file;
      return openEncrypted(file, seals, customerKeyIn(encryption)).catch((error: unknown) => {
        file.release();
        throw error;
      });
    },
    remove,
    idle: (olderThanMs) => idleFiles(root, olderThanMs),
  };
}

/** Paths of files. Directories are created on demand and cached. */
function openDirectories(root: string): {
  place(bucketId: string, fileId: string): string;
  create(bucketId: string): Promise<{ fileId: string; directory: string }>;
  forget(directory: string): void;
  sync(directory: string): Promise<void>;
} {
  const known = new Set<string>();
  const directories = openFileCache();
  const place = (bucketId: string, fileId: string): string => path.join(root, bucketId, fileId.slice(0, 2), fileId);
  return {
    place,
    async create(bucketId) {
      const fileId = randomBytes(ID_BYTES).toString('hex');
      const directory = path.dirname(place(bucketId, fileId));
      if (!known.has(directory)) {
        await mkdir(directory, { recursive: true, mode: 0o700 });
        await syncDirectory(path.dirname(directory));
        await syncDirectory(root);
        known.add(directory);
      }
      return { fileId, directory };
    },
    forget(directory) {
      known.delete(directory);
      directories.forget(directory);
    },
    async sync(directory) {
      const open = await directories.open(directory);
      await open.sync().finally(() => open.release());
    },
  };
}

async function writeFile(
  file: string,
  syncName: () => Promise<void>,
  content: AsyncIterable<Buffer>,
  { watch, encryption }: { watch: Watch | undefined; encryption: Encryption | null },
): Promise<{ size: number; md5: string }> {
  const handle = await open(file, 'wx', 0o600);
  const behind = openWriteBehind(handle, { written: releaseMemory });
  const md5 = createHash('md5');
  try {
    let size = 0;
    if (encryption) await behind.write(encryption.header);
    for await (const piece of content) {
      // The memory of a piece is released once it is written.
      size += piece.length;
      md5.update(piece);
      watch?.piece(piece);
      await behind.write(encryption ? encryption.encrypt(piece) : piece);
      if (encryption) releaseMemory(piece);
    }
    await behind.end();
    // Concurrently: the file system commits both together.
    const synced = await Promise.allSettled([handle.sync(), syncName()]);
    for (const one of synced) if (one.status === 'rejected') throw one.reason;
    const digest = md5.digest('hex');
    watch?.end(digest);
    return { size, md5: digest };
  } finally {
    await behind.settle();
    // Errors of close do not matter: the data is synced.
    void handle.close().catch(() => undefined);
  }
}

async function* idleFiles(root: string, olderThanMs: number): AsyncGenerator<{ bucketId: string; fileId: string }[]> {
  for await (const { bucketId, directory, fileIds } of directoriesOf(root)) {
    const batch: { bucketId: string; fileId: string }[] = [];
    for (const fileId of fileIds) {
      const found = await stat(path.join(directory, fileId)).catch(() => null);
      // A copy is a new link to an old file: ctime is the time of the link.
      if (found && Date.now() - Math.max(found.mtimeMs, found.ctimeMs) >= olderThanMs) batch.push({ bucketId, fileId });
    }
    if (batch.length) yield batch;
  }
}

async function* directoriesOf(
  root: string,
): AsyncGenerator<{ bucketId: string; directory: string; fileIds: string[] }> {
  const failed = (): string[] => [];
  for (const bucketId of await readdir(root).catch(failed)) {
    for (const shard of await readdir(path.join(root, bucketId)).catch(failed)) {
      const directory = path.join(root, bucketId, shard);
      const names = await readdir(directory).catch(failed);
      yield { bucketId, directory, fileIds: names.filter((name) => FILE_ID.test(name)) };
    }
  }
}

/**
 * Seals the keys of encrypted files with the current key of the installation (docs/decisions/0040). Files may be read,
 * written and removed meanwhile; what was interrupted continues when it is called again.
 * @param files all that are encrypted with the key of the installation
 * @returns numbers of files that were sealed with other keys, and of those that no key opens
 * @throws Error of the file system
 */
export async function reencryptFiles(
  root: string,
  secrets: SecretBox,
  files: AsyncIterable<readonly { bucketId: string; fileId: string }[]>,
): Promise<{ reencrypted: number; unreadable: number }> {
  const { place } = openDirectories(root);
  const count = { reencrypted: 0, unreadable: 0, kept: 0 };
  for await (const page of files) {
    for (const { bucketId, fileId } of page) {
      const file = await open(place(bucketId, fileId), 'r+').catch(absentIsNull);
      if (file) count[await reencryptFileKey(file, secrets).finally(() => file.close())] += 1;
    }
  }
  return count;
}

function ignoreAbsent(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}
