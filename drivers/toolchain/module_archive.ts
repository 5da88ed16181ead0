// Go module archives: download, extraction, and verification against the hash in go.sum
// (https://pkg.go.dev/golang.org/x/mod/sumdb/dirhash#Hash1).
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { Transform, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { open, type Entry, type ZipFile } from 'yauzl';
import { trusted } from '../../core/outbound/client';

const BYTES_MAX = 1 << 30;
/** Until the answer begins. The caller limits the whole. */
export const HEAD_WITHIN_MS = 60_000;
const PROGRAMS = /^(bin|pkg\/tool)\//;

/** The response is not an archive, or not the archive of this module. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError';
}

/** False where the server does not have the file. @throws errors of `trusted`; ArchiveError for other responses */
export async function downloadArchive(
  address: string,
  file: string,
  signal: AbortSignal,
  headers: Record<string, string> = {},
): Promise<boolean> {
  const bounds = { within: { ms: HEAD_WITHIN_MS, of: 'head' }, bodyBytesMax: BYTES_MAX } as const;
  const response = await trusted(address, { signal, headers, ...bounds, redirects: 'followed' });
  if (response.status === 404 || response.status === 410) return false;
  if (!response.ok || response.body === null) throw new ArchiveError(`The answer has the status ${response.status}.`);
  await pipeline(response.body as ReadableStream, createWriteStream(file));
  return true;
}

/**
 * Extracts entries below the prefix, and returns the hash of the archive.
 * @param prefix `module@version/`, with which every name starts
 * @throws ArchiveError
 */
export async function unpackArchive(file: string, prefix: string, target: string): Promise<string> {
  const archive = await openArchive(file);
  const sums: { name: string; sum: string }[] = [];
  let left = BYTES_MAX;
  try {
    for await (const entry of entriesOf(archive)) {
      const name = entry.fileName;
      left -= entry.uncompressedSize;
      const below = name.slice(prefix.length);
      if (!name.startsWith(prefix) || left < 0 || path.posix.normalize(`/${below}`) !== `/${below}`)
        throw new ArchiveError('The archive contains unexpected files, or is too large.');
      if (below.endsWith('/')) continue;
      sums.push({ name, sum: await unpackEntry(archive, entry, path.join(target, below), PROGRAMS.test(below)) });
    }
  } finally {
    archive.close();
  }
  sums.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
  const text = sums.map(({ name, sum }) => `${sum}  ${name}\n`).join('');
  return `h1:${createHash('sha256').update(text).digest('base64')}`;
}

function openArchive(file: string): Promise<ZipFile> {
  return new Promise((resolve, reject) => {
    open(file, { lazyEntries: true, autoClose: false }, (error, archive) =>
      error === null ? resolve(archive) : reject(new ArchiveError(error.message)),
    );
  });
}

/** Sequential: the next entry is read on demand. */
async function* entriesOf(archive: ZipFile): AsyncGenerator<Entry> {
  for (let read = 0; read < archive.entryCount; read += 1) {
    yield await new Promise<Entry>((resolve, reject) => {
      archive.once('entry', resolve);
      archive.once('error', (error: Error) => reject(new ArchiveError(error.message)));
      archive.readEntry();
    });
    archive.removeAllListeners();
  }
}

async function unpackEntry(archive: ZipFile, entry: Entry, target: string, isProgram: boolean): Promise<string> {
  await mkdir(path.dirname(target), { recursive: true, mode: 0o755 });
  const content = await new Promise<Readable>((resolve, reject) => {
    archive.openReadStream(entry, (error, stream) => (error === null ? resolve(stream) : reject(error)));
  });
  const hash = createHash('sha256');
  const hashing = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      done(null, chunk);
    },
  });
  await pipeline(content, hashing, createWriteStream(target, { mode: isProgram ? 0o755 : 0o644 }));
  return hash.digest('hex');
}
