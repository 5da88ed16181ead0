// Uploaded archives as files of one directory: `<id>.<sha256>`, and `<id>.<random>.part` during an upload. The
// receiving processes share the directory with the host that unpacks them, or the file store: there the archives have
// the same names, and the directory has copies of those that this machine has unpacked.
import { createHash, randomUUID } from 'node:crypto';
import { constants, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../core/config';
import { asDriverErrors, DriverError, type DriverContext } from '../../core/driver';
import { openWriteBehind } from '../../core/files/write_behind';
import { openEarlySync } from '../../core/files/early_sync';
import { releaseMemory } from '../../core/process/release_memory';
import type { FileStore } from '../file_store';
import { fileStoreAddress } from '../file_store/open';

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
  /** Makes it the file of the upload: it is durable when this resolves. @throws EngineAway */
  keep(id: string, received: ReceivedFile, ctx: DriverContext): Promise<void>;
  discard(received: ReceivedFile): Promise<void>;
  /**
   * Path of the archive, which is fetched from the file store first where this directory does not have it; null where
   * neither has. @throws DriverError invalid where it was altered in the store
   */
  find(id: string, sha256: string, ctx: DriverContext): Promise<string | null>;
  /** Removes all files of an upload. */
  remove(id: string, ctx: DriverContext): Promise<void>;
  /** Ids of all uploads. */
  list(ctx: DriverContext): Promise<string[]>;
  /** Copies archives to the file store that it does not have. @param owned which of these ids are in use */
  storeAll(owned: (ids: string[]) => Promise<string[]>, ctx: DriverContext): Promise<void>;
  /** Removes partial files without a write for this long. */
  removeOldParts(olderThanMs: number, ctx: DriverContext): Promise<void>;
  /** Identifies where archives are kept: made by the host; null where the directory was never used by one. */
  readMark(): Promise<string | null>;
  ensureMark(): Promise<string>;
}

const BATCH_BYTES = 2 ** 20;
const WAITING_BYTES_MAX = 4 * BATCH_BYTES;
const PART = '.part';
const MARK = 'directory-id';
const ARCHIVE = /\.[0-9a-f]{64}$/;

/** In the file store. A call that is cut off there may still go on for this long. */
const FOLDER = 'source-uploads/';
const UNFINISHED_MS = 24 * 3_600_000;

/** The mark of the place where this process keeps archives; null where no host has used its directory. */
export async function uploadsMark(config: Pick<Config, 'runtimeDir' | 'fileStore'>): Promise<string | null> {
  return fileStoreAddress(config) ?? openSourceUploads(config.runtimeDir).readMark();
}

/**
 * @param runtimeDir of the data directory; its subdirectory is created at the first write
 * @param store null: archives stay in the directory
 */
export function openSourceUploads(runtimeDir: string, store: FileStore | null = null): UploadFiles {
  const directory = path.join(runtimeDir, 'source-uploads');
  const names = (): Promise<string[]> => readdir(directory).catch(() => []);
  const fileOf = (id: string, sha256: string): string => path.join(directory, `${id}.${sha256}`);
  return {
    receive: (id, body, bytesMax) => receive(directory, id, body, bytesMax),
    keep: (id, received, ctx) =>
      store
        ? keepInStore(store, id, received, ctx)
        : rename(received.part, fileOf(id, received.sha256)).then(() => syncDirectory(directory)),
    discard: ({ part }) => rm(part, { force: true }),
    async find(id, sha256, ctx) {
      const file = fileOf(id, sha256);
      if (await stat(file).catch(() => null)) return file;
      return store && asDriverErrors(() => fetchFromStore(store, directory, `${id}.${sha256}`, ctx));
    },
    async remove(id, ctx) {
      for (const name of await names())
        if (name.startsWith(`${id}.`)) await rm(path.join(directory, name), { force: true });
      for (const name of store ? await storedNames(store, `${id}.`, ctx) : []) await store?.remove(FOLDER + name, ctx);
    },
    async list(ctx) {
      const all = [...(await names()), ...(store ? await storedNames(store, '', ctx) : [])];
      return [...new Set(all.filter((name) => name.includes('.')).map(idOf))];
    },
    storeAll: async (owned, ctx) => (store ? storeAll(store, directory, owned, ctx) : undefined),
    async removeOldParts(olderThanMs, ctx) {
      for (const name of (await names()).filter((one) => one.endsWith(PART))) {
        const part = path.join(directory, name);
        const found = await stat(part).catch(() => null);
        if (found && found.mtimeMs < Date.now() - olderThanMs) await rm(part, { force: true });
      }
      await store?.removeUnfinished(FOLDER, new Date(Date.now() - UNFINISHED_MS), ctx);
    },
    ...(store ? markOfStore(store) : markOfDirectory(directory)),
  };
}

type Mark = Pick<UploadFiles, 'readMark' | 'ensureMark'>;

function markOfStore({ address }: FileStore): Mark {
  return { readMark: () => Promise.resolve(address), ensureMark: () => Promise.resolve(address) };
}

function markOfDirectory(directory: string): Mark {
  const readMark = (): Promise<string | null> => readFile(path.join(directory, MARK), 'utf8').catch(() => null);
  return {
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

const idOf = (name: string): string => name.slice(0, name.indexOf('.'));

async function storedNames(store: FileStore, prefix: string, ctx: DriverContext): Promise<string[]> {
  const found: string[] = [];
  for await (const { name } of store.list(FOLDER + prefix, ctx)) found.push(name.slice(FOLDER.length));
  return found;
}

async function keepInStore(
  store: FileStore,
  id: string,
  { part, sha256 }: ReceivedFile,
  ctx: DriverContext,
): Promise<void> {
  const stored = await store.put(`${FOLDER}${id}.${sha256}`, part, ctx);
  if (stored.sha256 !== sha256) throw new DriverError('transient', 'The archive has changed while it was stored.');
  await rm(part, { force: true });
}

async function fetchFromStore(
  store: FileStore,
  directory: string,
  name: string,
  ctx: DriverContext,
): Promise<string | null> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const part = path.join(directory, `${idOf(name)}.${randomUUID()}${PART}`);
  const found = await store.fetch(FOLDER + name, part, ctx);
  if (found === null) return null;
  if (!name.endsWith(`.${found.sha256}`)) {
    await rm(part, { force: true });
    throw new DriverError(
      'invalid',
      'The archive in the file store is not the one that was uploaded. Upload the source again, and deploy that.',
    );
  }
  await rename(part, path.join(directory, name));
  return path.join(directory, name);
}

async function storeAll(
  store: FileStore,
  directory: string,
  owned: (ids: string[]) => Promise<string[]>,
  ctx: DriverContext,
): Promise<void> {
  const here = (await readdir(directory).catch(() => [])).filter((name) => ARCHIVE.test(name));
  const there = new Set(here.length ? await storedNames(store, '', ctx) : []);
  const missing = here.filter((name) => !there.has(name));
  const used = new Set(missing.length ? await owned(missing.map(idOf)) : []);
  for (const name of missing.filter((one) => used.has(idOf(one))))
    await store.put(FOLDER + name, path.join(directory, name), ctx);
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
