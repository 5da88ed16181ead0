// Encryption with a passphrase in the format of age, version 1 (https://age-encryption.org/v1): programs of others open
// the files, and no byte is handed on before it was authenticated.
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  scryptSync,
  timingSafeEqual,
} from 'node:crypto';

const VERSION = 'age-encryption.org/v1';
const CIPHER = 'chacha20-poly1305';
const TAG_BYTES = 16;
const CHUNK_BYTES = 64 * 1024;
const FILE_KEY_BYTES = 16;
const SALT_BYTES = 16;
const PAYLOAD_NONCE_BYTES = 16;
const HEADER_BYTES_MAX = 1024;
/** Work factor of scrypt: 2^18 rounds, 256 MB and about a second, as age has it. */
const LOG_ROUNDS = 18;
/** Of foreign files: 1 GB. */
const LOG_ROUNDS_MAX = 20;
const HEADER = /^age-encryption\.org\/v1\n-> scrypt ([\w+/]{22}) (\d{1,2})\n([\w+/]{43})\n--- ([\w+/]{43})\n/;

/** Not what it was: what a file of age says, and its bytes, do not agree. */
export class AgeError extends Error {
  constructor(readonly reason: 'foreign' | 'passphrase' | 'changed' | 'short') {
    super(`the file is not usable: ${reason}`);
  }
}

/** What a file begins with, apart from its content. */
interface Opened {
  payloadKey: Buffer;
  /** Content that came with the header. */
  rest: Buffer;
}

/**
 * The encrypted bytes of a source.
 * @param logRounds work factor of scrypt, which delays guesses: a random passphrase needs little of it
 */
export async function* encryptAge(
  source: AsyncIterable<Buffer>,
  passphrase: string,
  logRounds = LOG_ROUNDS,
): AsyncGenerator<Buffer> {
  const fileKey = randomBytes(FILE_KEY_BYTES);
  const nonce = randomBytes(PAYLOAD_NONCE_BYTES);
  yield Buffer.concat([Buffer.from(headerOf(fileKey, passphrase, logRounds)), nonce]);
  const payloadKey = derive(fileKey, nonce, 'payload');
  let counter = 0;
  for await (const { chunk, isLast } of chunksOf(source, CHUNK_BYTES)) {
    const cipher = createCipheriv(CIPHER, payloadKey, nonceOf(counter, isLast), { authTagLength: TAG_BYTES });
    yield Buffer.concat([cipher.update(chunk), cipher.final(), cipher.getAuthTag()]);
    counter += 1;
  }
}

/** The content of a file of age. @throws AgeError at the first chunk that is not as it was written */
export async function* decryptAge(source: AsyncIterable<Buffer>, passphrase: string): AsyncGenerator<Buffer> {
  const iterator = source[Symbol.asyncIterator]();
  const { payloadKey, rest } = await openHeader(iterator, passphrase);
  let counter = 0;
  for await (const { chunk, isLast } of chunksOf(following(rest, iterator), CHUNK_BYTES + TAG_BYTES)) {
    if (chunk.length < TAG_BYTES) throw new AgeError('short');
    const decipher = createDecipheriv(CIPHER, payloadKey, nonceOf(counter, isLast), { authTagLength: TAG_BYTES });
    decipher.setAuthTag(chunk.subarray(-TAG_BYTES));
    const content = decipher.update(chunk.subarray(0, -TAG_BYTES));
    try {
      decipher.final();
    } catch {
      // What ends where a chunk ends was cut off, or has changed: the last chunk is told by its nonce.
      throw new AgeError(isLast ? 'short' : 'changed');
    }
    yield content;
    counter += 1;
  }
}

function headerOf(fileKey: Buffer, passphrase: string, logRounds: number): string {
  const salt = randomBytes(SALT_BYTES);
  const cipher = createCipheriv(CIPHER, wrapKey(passphrase, salt, logRounds), Buffer.alloc(12), {
    authTagLength: TAG_BYTES,
  });
  const wrapped = Buffer.concat([cipher.update(fileKey), cipher.final(), cipher.getAuthTag()]);
  const signed = `${VERSION}\n-> scrypt ${unpadded(salt)} ${logRounds}\n${unpadded(wrapped)}\n---`;
  return `${signed} ${unpadded(macOf(fileKey, signed))}\n`;
}

async function openHeader(iterator: AsyncIterator<Buffer>, passphrase: string): Promise<Opened> {
  let begin = Buffer.alloc(0);
  while (begin.length < HEADER_BYTES_MAX) {
    const { value, done } = await iterator.next();
    if (done) break;
    begin = Buffer.concat([begin, value]);
  }
  const text = begin.subarray(0, HEADER_BYTES_MAX).toString('latin1');
  const [header, salt = '', rounds = '', wrapped = '', mac = ''] = HEADER.exec(text) ?? [];
  if (header === undefined || Number(rounds) > LOG_ROUNDS_MAX || rounds.startsWith('0')) throw new AgeError('foreign');
  const fileKey = unwrap(Buffer.from(wrapped, 'base64'), wrapKey(passphrase, Buffer.from(salt, 'base64'), +rounds));
  const signed = header.slice(0, header.lastIndexOf(' '));
  if (!timingSafeEqual(macOf(fileKey, signed), Buffer.from(mac, 'base64'))) throw new AgeError('changed');
  const content = begin.subarray(header.length);
  if (content.length < PAYLOAD_NONCE_BYTES) throw new AgeError('short');
  return {
    payloadKey: derive(fileKey, content.subarray(0, PAYLOAD_NONCE_BYTES), 'payload'),
    rest: content.subarray(PAYLOAD_NONCE_BYTES),
  };
}

function unwrap(wrapped: Buffer, key: Buffer): Buffer {
  const decipher = createDecipheriv(CIPHER, key, Buffer.alloc(12), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(wrapped.subarray(-TAG_BYTES));
  const fileKey = decipher.update(wrapped.subarray(0, -TAG_BYTES));
  try {
    decipher.final();
  } catch {
    throw new AgeError('passphrase');
  }
  return fileKey;
}

function wrapKey(passphrase: string, salt: Buffer, logRounds: number): Buffer {
  const [N, r] = [2 ** logRounds, 8];
  const named = Buffer.concat([Buffer.from(`${VERSION}/scrypt`), salt]);
  return scryptSync(passphrase, named, 32, { N, r, p: 1, maxmem: 129 * N * r });
}

function macOf(fileKey: Buffer, signed: string): Buffer {
  return createHmac('sha256', derive(fileKey, Buffer.alloc(0), 'header'))
    .update(signed)
    .digest();
}

function derive(fileKey: Buffer, salt: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', fileKey, salt, purpose, 32));
}

function nonceOf(counter: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUIntBE(counter, 5, 6);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}

async function* following(first: Buffer, iterator: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value;
}

/** Cuts a source to chunks of a size, of which the last may be shorter. There is one at least. */
async function* chunksOf(
  source: AsyncIterable<Buffer>,
  size: number,
): AsyncGenerator<{ chunk: Buffer; isLast: boolean }> {
  let kept: Buffer[] = [];
  let bytes = 0;
  for await (const piece of source) {
    kept.push(piece);
    bytes += piece.length;
    if (bytes <= size) continue;
    const all = Buffer.concat(kept);
    let from = 0;
    // The last chunk is known as such once the source has ended.
    for (; bytes - from > size; from += size) yield { chunk: all.subarray(from, from + size), isLast: false };
    kept = [all.subarray(from)];
    bytes -= from;
  }
  yield { chunk: Buffer.concat(kept), isLast: true };
}
