// The file of an import: what it is, by its content, because names of files say nothing of it.
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { DriverError } from '../../../core/driver';

export type FileFormat = 'text' | 'custom' | 'tar' | 'rdb';

const HEAD_BYTES = 512;
const TAR_MARK_AT = 257;
const DAMAGED = 'The file is compressed with gzip, and damaged or incomplete.';

const OTHERS: readonly [string, string][] = [
  ['504b0304', 'a ZIP archive'],
  ['425a68', 'compressed with bzip2'],
  ['fd377a585a00', 'compressed with xz'],
  ['28b52ffd', 'compressed with zstd'],
  ['53514c69746520666f726d6174203300', 'a database of SQLite'],
];

export interface SourceFile {
  format: FileFormat;
  /** From the beginning, without compression. */
  open(): AsyncIterable<Buffer>;
}

/** @throws DriverError invalid for a format that no engine imports */
export async function inspectSourceFile(file: string): Promise<SourceFile> {
  const plain = await headOf(file);
  if (!plain.length) throw new DriverError('invalid', 'The file is empty.');
  const isGzip = plain[0] === 0x1f && plain[1] === 0x8b;
  const unpacked = (): Readable => {
    const raw = createReadStream(file);
    if (!isGzip) return raw;
    const gunzip = createGunzip();
    raw.on('error', (error) => gunzip.destroy(error));
    gunzip.once('close', () => raw.destroy());
    return raw.pipe(gunzip);
  };
  const head = isGzip ? await firstBytes(unpacked()) : plain;
  return { format: formatOf(head), open: () => whole(unpacked()) };
}

/** Its pieces. @throws DriverError invalid where it is compressed, and damaged or cut off */
async function* whole(stream: Readable): AsyncGenerator<Buffer> {
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) yield piece;
  } catch (error) {
    if (!String((error as NodeJS.ErrnoException).code).startsWith('Z_')) throw error;
    throw Object.assign(new DriverError('invalid', DAMAGED), { cause: error });
  }
}

function formatOf(head: Buffer): FileFormat {
  const other = OTHERS.find(([mark]) => head.toString('hex').startsWith(mark));
  if (other) throw new DriverError('invalid', `The file is ${other[1]}. Send it unpacked, or compressed with gzip.`);
  if (head.subarray(0, 5).toString('latin1') === 'PGDMP') return 'custom';
  if (/^(REDIS|VALKEY)\d/.test(head.subarray(0, 9).toString('latin1'))) return 'rdb';
  if (head.subarray(TAR_MARK_AT, TAR_MARK_AT + 5).toString('latin1') === 'ustar') return 'tar';
  return 'text';
}

async function headOf(file: string): Promise<Buffer> {
  const handle = await open(file, 'r');
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    const { bytesRead } = await handle.read(head, 0, HEAD_BYTES, 0);
    return head.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

async function firstBytes(stream: Readable): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      pieces.push(piece);
      if ((bytes += piece.length) >= HEAD_BYTES) break;
    }
  } catch {
    throw new DriverError('invalid', DAMAGED);
  }
  return Buffer.concat(pieces).subarray(0, HEAD_BYTES);
}
