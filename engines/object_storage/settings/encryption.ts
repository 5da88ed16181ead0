// Server-side encryption (SSE-S3). Each file has its own key, which is stored at its start, sealed with the key of the
// installation; the content follows in AES-256-CTR, so that ranges can be read directly. A copy is a hard link and
// needs no new key.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { SecretBox } from '../../../core/secrets';
import type { OpenFile } from '../files/open_files';

export type Seals = Pick<SecretBox, 'seal' | 'open'>;

const CIPHER = 'aes-256-ctr';
const KEY_BYTES = 32;
const BLOCK_BYTES = 16;
/** Size of the sealed key, padded with spaces. */
const HEADER_BYTES = 512;
const CONTEXT = 'bucket_objects:file_key';
const HEADER = /^v1\.[a-z0-9_-]{1,32}\.[\w-]+ +$/;

export interface Encryption {
  /** The start of the file. */
  header: Buffer;
  /** Encrypts the next piece into a new buffer. */
  encrypt(piece: Buffer): Buffer;
}

export function newEncryption(seals: Seals): Encryption {
  const key = randomBytes(KEY_BYTES);
  // Each key encrypts one file, so the counter starts at 0.
  const cipher = createCipheriv(CIPHER, key, Buffer.alloc(BLOCK_BYTES));
  return { header: headerOf(key.toString('base64'), seals), encrypt: (piece) => cipher.update(piece) };
}

function headerOf(key: string, seals: Seals): Buffer {
  const header = Buffer.alloc(HEADER_BYTES, ' ');
  const written = header.write(seals.seal(key, CONTEXT));
  if (written === HEADER_BYTES) throw new Error('the sealed key of a file is longer than its header');
  return header;
}

const keyIn = (header: Buffer, seals: Seals): string => seals.open(header.toString('latin1').trimEnd(), CONTEXT);

/**
 * Seals the key of a file with the current key of the installation. The header is one sector of a disk, so the file has
 * the one of before or this one, also after a power cut. Durable once it resolves.
 * @returns `unreadable`: it begins as an encrypted file does, and no key opens it; `kept`: there was nothing to do
 */
export async function reencryptFileKey(
  file: FileHandle,
  seals: Seals & Pick<SecretBox, 'prefix'>,
): Promise<'reencrypted' | 'unreadable' | 'kept'> {
  const header = Buffer.alloc(HEADER_BYTES);
  const { bytesRead } = await file.read(header, 0, HEADER_BYTES, 0);
  const text = header.toString('latin1');
  if (bytesRead < HEADER_BYTES || !HEADER.test(text) || text.startsWith(seals.prefix)) return 'kept';
  let key: string;
  try {
    key = keyIn(header, seals);
  } catch {
    return 'unreadable';
  }
  await file.write(headerOf(key, seals), 0, HEADER_BYTES, 0);
  await file.datasync();
  return 'reencrypted';
}

/** Decrypts an encrypted file. @throws Error where it was sealed with another installation key */
export async function openEncrypted(file: OpenFile, seals: Seals): Promise<OpenFile> {
  // The first reading may meet a header that is being written.
  const text = await readKey(file, seals).catch(() => readKey(file, seals));
  const key = Buffer.from(text, 'base64');
  return {
    ...file,
    async read(buffer, length, position) {
      const size = await file.read(buffer, length, HEADER_BYTES + position);
      const counter = Buffer.alloc(BLOCK_BYTES);
      counter.writeBigUInt64BE(BigInt(Math.floor(position / BLOCK_BYTES)), BLOCK_BYTES - 8);
      const decipher = createDecipheriv(CIPHER, key, counter);
      decipher.update(Buffer.alloc(position % BLOCK_BYTES));
      decipher.update(buffer.subarray(0, size)).copy(buffer);
      return size;
    },
  };
}

async function readKey(file: OpenFile, seals: Seals): Promise<string> {
  const header = Buffer.alloc(HEADER_BYTES);
  for (let read = 0; read < HEADER_BYTES;) read += await file.read(header.subarray(read), HEADER_BYTES - read, read);
  return keyIn(header, seals);
}
