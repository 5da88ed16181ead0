// Files of objects that a client wants encrypted (SSE-S3). Each has a key of its own, sealed with the key of the
// installation at its beginning; the content follows in AES-256 in counter mode, so that ranges are read as they are.
// A copy is another name of the same file, and needs nothing else.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { SecretBox } from '../../../core/secrets';
import type { OpenFile } from '../files/open_files';

export type Seals = Pick<SecretBox, 'seal' | 'open'>;

const CIPHER = 'aes-256-ctr';
const KEY_BYTES = 32;
const BLOCK_BYTES = 16;
/** Of the sealed key, filled up with spaces. */
const HEADER_BYTES = 512;
const CONTEXT = 'bucket_objects:file_key';

export interface Encryption {
  /** The beginning of the file. */
  header: Buffer;
  /** The next piece, in memory of its own. */
  encrypt(piece: Buffer): Buffer;
}

export function newEncryption(seals: Seals): Encryption {
  const key = randomBytes(KEY_BYTES);
  const header = Buffer.alloc(HEADER_BYTES, ' ');
  const written = header.write(seals.seal(key.toString('base64'), CONTEXT));
  if (written === HEADER_BYTES) throw new Error('the sealed key of a file is longer than its header');
  // A key is used once, so the counter begins at 0.
  const cipher = createCipheriv(CIPHER, key, Buffer.alloc(BLOCK_BYTES));
  return { header, encrypt: (piece) => cipher.update(piece) };
}

/** The content of an encrypted file. @throws Error where the key of the installation is another one */
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
