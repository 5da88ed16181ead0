// Server-side encryption (SSE-S3). Each file has its own key, which is stored at its start, sealed with the key of the
// installation; the content follows in AES-256-CTR, so that ranges can be read directly. A copy is a hard link and
// needs no new key.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { SecretBox } from '../../../core/secrets';
import type { OpenFile } from '../files/open_files';

export type Seals = Pick<SecretBox, 'seal' | 'open'>;

const CIPHER = 'aes-256-ctr';
const KEY_BYTES = 32;
const BLOCK_BYTES = 16;
/** Size of the sealed key, padded with spaces. */
const HEADER_BYTES = 512;
const CONTEXT = 'bucket_objects:file_key';

export interface Encryption {
  /** The start of the file. */
  header: Buffer;
  /** Encrypts the next piece into a new buffer. */
  encrypt(piece: Buffer): Buffer;
}

export function newEncryption(seals: Seals): Encryption {
  const key = randomBytes(KEY_BYTES);
  const header = Buffer.alloc(HEADER_BYTES, ' ');
  const written = header.write(seals.seal(key.toString('base64'), CONTEXT));
  if (written === HEADER_BYTES) throw new Error('the sealed key of a file is longer than its header');
  // Each key encrypts one file, so the counter starts at 0.
  const cipher = createCipheriv(CIPHER, key, Buffer.alloc(BLOCK_BYTES));
  return { header, encrypt: (piece) => cipher.update(piece) };
}

/** Decrypts an encrypted file. @throws Error where it was sealed with another installation key */
export async function openEncrypted(file: OpenFile, seals: Seals): Promise<OpenFile> {
  const header = Buffer.alloc(HEADER_BYTES);
  for (let read = 0; read < HEADER_BYTES;) read += await file.read(header.subarray(read), HEADER_BYTES - read, read);
  const key = Buffer.from(seals.open(header.toString('latin1').trimEnd(), CONTEXT), 'base64');
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
