// Uploaded archives as files of one directory: `<id>.<sha256>`, and `<id>.<random>.part` during an upload. The
// receiving processes share the directory with the host that unpacks them.
import { createHash, randomUUID } from 'node:crypto';
import { constants, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { openWriteBehind } from '../../core/files/write_behind';
import { openEarlySync } from '../../core/files/early_sync';
import { releaseMemory } from '../../core/process/release_memory';

/** The body exceeds the limit. */
export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge';
}

export interface ReceivedFile {
  sha256: string;
  bytes: number;
  /** Temporary path, until it is kept. */
  part: string;
}

export interface UploadFiles {
  /**
   * Writes and hashes a body. An interrupted or oversized one is removed.
   * @throws BodyTooLarge; errors of the body
   */
  receive(id: string, body: AsyncIterable<Buffer>, bytesMax: number): Promise<ReceivedFile>;
  /** Makes it the file of the upload. */
  keep(id: string, received: ReceivedFile): Promise<void>;
  discard(received: ReceivedFile): Promise<void>;
  /** Path of the archive; null where it is not in this directory. */
  find(id: string, sha256: string): Promise<string | null>;
  /** Removes all files of an upload. */
  remove(id: string): Promise<void>;
  /** Ids of all uploads. */
  list(): Promise<string[]>;
  /** Removes partial files without a write for this long. */
  removeOldParts(olderThanMs: number): Promise<void>;
  /** Identifies this directory: made by the host; null where the directory was never used by one. */
  readMark(): Promise<string | null>;
  ensureMark(): Promise<string>;
}

const BATCH_BYTES = 2 ** 20;
const WAITING_BYTES_MAX = 4 * BATCH_BYTES;
const PART = '.part';
const MARK = 'directory-id';

/** @param runtimeDir of the data directory; its subdirectory is created at the first write */
export function openSourceUploads(runtimeDir: string): UploadFiles {
  const directory = path.join(runtimeDir, 'source-uploads');
  const names = (): Promise<string[]> => readdir(directory).catch(() => []);
  const fileOf = (id: string, sha256: string): string => path.join(directory, `${id}.${sha256}`);
  const readMark = (): Promise<string | null> => readFile(path.join(directory, MARK), 'utf8').catch(() => null);
  return {
    receive: (id, body, bytesMax) => receive(directory, id, body, bytesMax),
    keep: (id, { part, sha256 }) => rename(part, fileOf(id, sha256)).then(() => syncDirectory(directory)),
    discard: ({ part }) => rm(part, { force: true }),
    async find(id, sha256) {
      const file = fileOf(id, sha256);
      return (await stat(file).catch(() => null)) ? file : null;
    },
    async remove(id) {
      for (const name of await names())
        if (name.startsWith(`${id}.`)) await rm(path.join(directory, name), { force: true });
    },
    async list() {
      const ids = (await names()).filter((name) => name.includes('.')).map((name) => name.slice(0, name.indexOf('.')));
      return [...new Set(ids)];
    },
    async removeOldParts(olderThanMs) {
      for (const name of (await names()).filter((one) => one.endsWith(PART))) {
        const part = path.join(directory, name);
        const found = await stat(part).catch(() => null);
        if (found && found.mtimeMs < Date.now() - olderThanMs) await rm(part, { force: true });
      }
    },
    readMark,
    async ensureMark() {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      // Of two concurrent writers the first one wins.
      await writeFile(path.join(directory, MARK), randomUUID(), { flag: 'wx', mode: 0o600 }).catch(() => undefined);
      const mark = await readMark();
      if (!mark) throw new Error(`can't write in ${directory}`);
      return mark;
    },
  };
}

async function receive(
  directory: string,
  id: string,
  body: AsyncIterable<Buffer>,
  bytesMax: number,
): Promise<ReceivedFile> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const part = path.join(directory, `${id}.${randomUUID()}${PART}`);
  const handle = await open(part, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  const early = openEarlySync(handle);
  const written = (piece: Buffer): void => {
    early.count(piece.length);
    releaseMemory(piece);
  };
  const behind = openWriteBehind(handle, { batchBytes: BATCH_BYTES, waitingBytesMax: WAITING_BYTES_MAX, written });
  const hash = createHash('sha256');
  let bytes = 0;
  try {
    for await (const piece of body) {
      bytes += piece.length;
      if (bytes > bytesMax) throw new BodyTooLarge();
      hash.update(piece);
      await behind.write(piece);
    }
    await behind.end();
    await early.end();
    await handle.sync();
    return { part, bytes, sha256: hash.digest('hex') };
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  } finally {
    await behind.settle();
    await early.end().catch(() => undefined);
    await handle.close();
  }
}

/** A rename is durable once its directory is synced. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory);
  await handle.sync().finally(() => handle.close());
}
