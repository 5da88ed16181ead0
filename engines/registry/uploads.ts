// Layer uploads: files that grow chunk by chunk and are hashed on the fly. Received bytes survive a disconnect of the
// client and a restart of this process; the client resumes at the stored offset.
import { createHash, type Hash } from 'node:crypto';
import { constants, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { releaseMemory } from '../../core/process/release_memory';
import { openWriteBehind } from '../../core/files/write_behind';
import { digestOf } from './blob_files';
import { openEarlySync } from '../../core/files/early_sync';
import { RegistryError } from './errors';

export interface UploadFiles {
  /** Received bytes; null for an unknown upload. */
  offset(id: string): Promise<number | null>;
  create(id: string): Promise<void>;
  /** Appends a chunk. @returns the new offset. @throws SIZE_INVALID beyond `sizeMax`; earlier chunks are kept */
  append(id: string, chunk: Readable, sizeMax: number): Promise<number>;
  /** Syncs the file and compares it with the digest. @throws DIGEST_INVALID */
  finish(id: string, digest: string): Promise<{ file: string; size: number }>;
  remove(id: string): Promise<void>;
  removeOld(olderThanMs: number): Promise<void>;
}

/** Hash state of the file. After a restart, the file is read again. */
interface Progress {
  hash: Hash;
  offset: number;
}

const BATCH_BYTES = 2 ** 20;
const WAITING_BYTES_MAX = 8 * BATCH_BYTES;
const HASHED = 'sha256';

interface Uploads {
  directory: string;
  progress: Map<string, Progress>;
  busy: Set<string>;
}

export function openUploadFiles(directory: string): UploadFiles {
  const uploads: Uploads = { directory, progress: new Map(), busy: new Set() };
  return {
    offset: (id) => offsetOf(uploads, id),
    create: (id) => create(uploads, id),
    append: (id, chunk, sizeMax) => alone(uploads, id, () => append(uploads, id, chunk, sizeMax)),
    finish: (id, digest) => alone(uploads, id, () => finish(uploads, id, digest)),
    remove: (id) => remove(uploads, id),
    removeOld: (olderThanMs) => removeOld(uploads, olderThanMs),
  };
}

/** Serialises requests for an upload. */
async function alone<T>({ busy }: Uploads, id: string, work: () => Promise<T>): Promise<T> {
  if (busy.has(id)) throw new RegistryError('BLOB_UPLOAD_INVALID', 'Another request writes to this upload.');
  busy.add(id);
  try {
    return await work();
  } finally {
    busy.delete(id);
  }
}

function fileOf({ directory }: Uploads, id: string): string {
  return join(directory, id);
}

async function offsetOf(uploads: Uploads, id: string): Promise<number | null> {
  return (await stat(fileOf(uploads, id)).catch(() => null))?.size ?? null;
}

async function create(uploads: Uploads, id: string): Promise<void> {
  await mkdir(uploads.directory, { recursive: true, mode: 0o700 });
  await (await open(fileOf(uploads, id), 'wx', 0o600)).close();
  uploads.progress.set(id, { hash: createHash(HASHED), offset: 0 });
}

async function append(uploads: Uploads, id: string, chunk: Readable, sizeMax: number): Promise<number> {
  const start = await offsetOf(uploads, id);
  if (start === null) throw unknownUpload();
  const known = uploads.progress.get(id);
  const hash = known?.offset === start ? known.hash : null;
  // After an interrupted chunk, the hash covers more bytes than the file.
  uploads.progress.delete(id);
  await appendTo(fileOf(uploads, id), chunk, { start, sizeMax, hash });
  const offset = (await offsetOf(uploads, id)) ?? 0;
  if (hash) uploads.progress.set(id, { hash, offset });
  return offset;
}

async function finish(uploads: Uploads, id: string, digest: string): Promise<{ file: string; size: number }> {
  const file = fileOf(uploads, id);
  const size = await sync(file);
  const found = await finishedDigest(file, digest, uploads.progress.get(id), size);
  if (found !== digest) throw new RegistryError('DIGEST_INVALID', 'The digest is not that of the uploaded content.');
  uploads.progress.delete(id);
  return { file, size };
}

async function remove(uploads: Uploads, id: string): Promise<void> {
  uploads.progress.delete(id);
  await rm(fileOf(uploads, id), { force: true });
}

async function removeOld(uploads: Uploads, olderThanMs: number): Promise<void> {
  const limit = Date.now() - olderThanMs;
  for (const id of await readdir(uploads.directory).catch(() => [])) {
    const found = await stat(fileOf(uploads, id)).catch(() => null);
    if (found && found.mtimeMs < limit && !uploads.busy.has(id)) await remove(uploads, id);
  }
}

async function appendTo(
  file: string,
  chunk: AsyncIterable<Buffer>,
  { start, sizeMax, hash }: { start: number; sizeMax: number; hash: Hash | null },
): Promise<void> {
  const handle = await open(file, constants.O_WRONLY | constants.O_APPEND);
  const early = openEarlySync(handle);
  const written = (piece: Buffer): void => {
    early.count(piece.length);
    releaseMemory(piece);
  };
  const behind = openWriteBehind(handle, { batchBytes: BATCH_BYTES, waitingBytesMax: WAITING_BYTES_MAX, written });
  let total = start;
  try {
    for await (const piece of chunk) {
      total += piece.length;
      if (total > sizeMax) throw new RegistryError('SIZE_INVALID', 'The registry has no room for the layer.');
      hash?.update(piece);
      await behind.write(piece);
    }
    await behind.end();
    await early.end();
  } finally {
    await behind.settle();
    await early.end().finally(() => handle.close());
  }
}

async function sync(file: string): Promise<number> {
  const handle = await open(file, 'r+').catch(() => {
    throw unknownUpload();
  });
  try {
    await handle.sync();
    return (await handle.stat()).size;
  } finally {
    await handle.close();
  }
}

async function finishedDigest(
  file: string,
  digest: string,
  progress: Progress | undefined,
  size: number,
): Promise<string> {
  const algorithm = digest.slice(0, digest.indexOf(':'));
  if (algorithm === HASHED && progress?.offset === size) return `${HASHED}:${progress.hash.copy().digest('hex')}`;
  return digestOf(file, algorithm);
}

function unknownUpload(): RegistryError {
  return new RegistryError('BLOB_UPLOAD_UNKNOWN', 'There is no such upload. Start a new one.');
}
