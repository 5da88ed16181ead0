// Server-side encryption (SSE-S3, SSE-C). Each file has its own key, which is stored at its start, sealed with the key
// of the installation or encrypted with that of a client; the content follows in AES-256-CTR, so that ranges can be
// read directly. A copy is a hard link and needs no new key.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { SecretBox } from '../../../core/secrets';
import type { OpenFile } from '../../../core/files/open_files';

export type Seals = Pick<SecretBox, 'seal' | 'open'>;

const CIPHER = 'aes-256-ctr';
const KEY_BYTES = 32;
const BLOCK_BYTES = 16;
/** Size of the sealed key, padded with spaces. */
const HEADER_BYTES = 512;
const CONTEXT = 'bucket_objects:file_key';
const CUSTOMER_MARK = 'c1.';
const WRAPPING = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export interface Encryption {
  /** The start of the file. */
  header: Buffer;
  /** Encrypts the next piece into a new buffer. */
  encrypt(piece: Buffer): Buffer;
}

/** @param customerKey of the client; null: the key of the installation */
export function newEncryption(seals: Seals, customerKey: Buffer | null): Encryption {
  const key = randomBytes(KEY_BYTES);
  // Each key encrypts one file, so the counter starts at 0.
  const cipher = createCipheriv(CIPHER, key, Buffer.alloc(BLOCK_BYTES));
  const header = customerKey ? padded(wrapKey(key, customerKey)) : headerOf(key.toString('base64'), seals);
  return { header, encrypt: (piece) => cipher.update(piece) };
}

function wrapKey(key: Buffer, customerKey: Buffer): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(WRAPPING, customerKey, nonce).setAAD(Buffer.from(CONTEXT));
  const wrapped = Buffer.concat([cipher.update(key), cipher.final()]);
  return CUSTOMER_MARK + Buffer.concat([nonce, cipher.getAuthTag(), wrapped]).toString('base64url');
}

/** @throws Error for another key, and for a file that has none of a client */
function unwrapKey(text: string, customerKey: Buffer): Buffer {
  if (!text.startsWith(CUSTOMER_MARK)) throw new Error('a file of an object is not encrypted with a key of a client');
  const bytes = Buffer.from(text.slice(CUSTOMER_MARK.length), 'base64url');
  const [start, end] = [NONCE_BYTES, NONCE_BYTES + TAG_BYTES];
  const decipher = createDecipheriv(WRAPPING, customerKey, bytes.subarray(0, start), { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(CONTEXT)).setAuthTag(bytes.subarray(start, end));
  return Buffer.concat([decipher.update(bytes.subarray(end)), decipher.final()]);
}

const headerOf = (key: string, seals: Seals): Buffer => padded(seals.seal(key, CONTEXT));

function padded(text: string): Buffer {
  const header = Buffer.alloc(HEADER_BYTES, ' ');
  const written = header.write(text);
  if (written === HEADER_BYTES) throw new Error('the sealed key of a file is longer than its header');
  return header;
}

const textIn = (header: Buffer): string => header.toString('latin1').trimEnd();
const keyIn = (header: Buffer, seals: Seals): string => seals.open(textIn(header), CONTEXT);

/**
 * Seals the key of a file with the current key of the installation. The header is one sector of a disk, so the file has
 * the one of before or this one, also after a power cut. Durable once it resolves.
 * @param file one that is encrypted with the key of the installation
 * @returns `unreadable`: no key opens it; `kept`: there was nothing to do
 */
export async function reencryptFileKey(
  file: FileHandle,
  seals: Seals & Pick<SecretBox, 'prefix'>,
): Promise<'reencrypted' | 'unreadable' | 'kept'> {
  const header = Buffer.alloc(HEADER_BYTES);
  await file.read(header, 0, HEADER_BYTES, 0);
  if (textIn(header).startsWith(seals.prefix)) return 'kept';
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

/** Decrypts an encrypted file. @throws Error where it was encrypted with another key */
export async function openEncrypted(file: OpenFile, seals: Seals, customerKey: Buffer | null): Promise<OpenFile> {
  const ofInstallation = async (): Promise<Buffer> => Buffer.from(keyIn(await readHeader(file), seals), 'base64');
  const key = customerKey
    ? unwrapKey(textIn(await readHeader(file)), customerKey)
    : // The first reading may meet a header that is being written.
      await ofInstallation().catch(ofInstallation);
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

async function readHeader(file: OpenFile): Promise<Buffer> {
  const header = Buffer.alloc(HEADER_BYTES);
  for (let read = 0; read < HEADER_BYTES;) read += await file.read(header.subarray(read), HEADER_BYTES - read, read);
  return header;
}
