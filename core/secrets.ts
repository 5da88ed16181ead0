// Encryption of secrets at rest: AES-256-GCM with a key outside of the database, whose id is in every sealed value.
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  hkdfSync,
  randomBytes,
  type KeyObject,
} from 'node:crypto';
import {
  chmodSync,
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { makePassableDirectory } from './directory';
import { StartupError } from './startup_error';

/** Master keys of 32 bytes. The first one seals; the others only open existing values. */
type KeyRing = readonly { readonly id: string; readonly key: Buffer }[];

export interface SecretBox {
  /** How each value begins that the current key has sealed: `v1.<key id>.` */
  readonly prefix: string;
  /**
   * Returns `v1.<key id>.<base64url of nonce, text and tag>`.
   * @param context binds the value to its owner, `environment_variables:<application id>:<key>`; it cannot be opened in
   * another context
   */
  seal(plain: string, context: string): string;
  /** @throws Error if the value is altered, sealed for another context, or under an unknown key */
  open(sealed: string, context: string): string;
  /** Keyed SHA-256, 64 hex characters, for values that are compared but not read. Changes with the current key. */
  hmac(value: string, purpose: string): string;
  /** A 32-byte key derived (HKDF-SHA256, RFC 5869) from the current one, e.g. for cursors. */
  subKey(purpose: string): KeyObject;
}

const VERSION = 'v1';
const KEY_BYTES = 32;
/** 96 random bits, as required by NIST SP 800-38D section 8.2.2; sufficient for 2^32 values per key. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** @param keys at least one */
export function secretBox(keys: KeyRing): SecretBox {
  const current = keys[0];
  if (!current) throw new Error('a key ring needs a key');
  // Node 24 takes 15 to 20 us to parse the bytes of a key, each time; a key object is parsed once.
  const sealing = new Map(keys.map(({ id, key }) => [id, createSecretKey(derive(key, 'seal'))]));
  const derived = new Map<string, KeyObject>();
  const keyFor = (purpose: string): KeyObject => {
    const key = derived.get(purpose) ?? createSecretKey(derive(current.key, `purpose:${purpose}`));
    derived.set(purpose, key);
    return key;
  };
  const prefix = `${VERSION}.${current.id}.`;
  return {
    prefix,
    seal: (plain, context) => prefix + encrypt(sealing.get(current.id) as KeyObject, plain, context),
    open: (sealed, context) => open(sealing, sealed, context),
    hmac: (value, purpose) =>
      createHmac('sha256', keyFor(`hmac:${purpose}`))
        .update(value)
        .digest('hex'),
    subKey: keyFor,
  };
}

/**
 * The keys of this installation: the setting PLATFORM_SECRET_KEY, else the file `secret-key` in the data directory,
 * which is created at the first start with mode 0600.
 * @throws StartupError for a malformed setting or file, or a read-only directory
 */
export function loadKeyRing({ setting, dataDir }: { setting: string | null; dataDir: string }): KeyRing {
  if (setting !== null) return parse(setting, 'PLATFORM_SECRET_KEY');
  const path = join(dataDir, 'secret-key');
  try {
    const text = readKeyFile(path) ?? createKeyFile(path, dataDir);
    return parse(text, path);
  } catch (error) {
    if (error instanceof StartupError) throw error;
    throw new StartupError(`the key file ${path} cannot be read or made: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/**
 * Parses `<key>` or `<id>:<key>,<id>:<key>` with 32-byte keys in base64, base64url or hex; the first is the current
 * one.
 * @returns null if it is malformed
 */
export function parseKeyRing(text: string): KeyRing | null {
  const keys = text
    .trim()
    .split(',')
    .map((entry) => parseKey(entry.trim()));
  const ids = new Set(keys.map((key) => key?.id));
  if (ids.size < keys.length || keys.includes(null)) return null;
  return keys as { id: string; key: Buffer }[];
}

function parse(text: string, source: string): KeyRing {
  const keys = parseKeyRing(text);
  if (!keys)
    throw new StartupError(`${source} is malformed: expected 32 bytes in base64 or hex, or a list id:key,id:key`);
  return keys;
}

function parseKey(entry: string): { id: string; key: Buffer } | null {
  const match = /^(?:([a-z0-9_-]{1,32}):)?([A-Za-z0-9+/_=-]+)$/.exec(entry);
  const text = match?.[2] ?? '';
  const key = /^[0-9a-fA-F]{64}$/.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64');
  if (key.length !== KEY_BYTES) return null;
  return { id: match?.[1] ?? createHash('sha256').update(key).digest('hex').slice(0, 8), key };
}

function encrypt(key: KeyObject, plain: string, context: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(context));
  return Buffer.concat([nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString(
    'base64url',
  );
}

function open(sealing: Map<string, KeyObject>, sealed: string, context: string): string {
  const [version, id = '', content = '', ...rest] = sealed.split('.');
  if (version !== VERSION || rest.length) throw new Error('not a sealed value');
  const key = sealing.get(id);
  if (!key) throw new Error(`the value was sealed under the key "${id}", which is not in PLATFORM_SECRET_KEY`);
  const bytes = Buffer.from(content, 'base64url');
  if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString('base64url') !== content)
    throw new Error('not a sealed value');
  return decrypt(key, bytes, context);
}

function decrypt(key: KeyObject, bytes: Buffer, context: string): string {
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString('utf8');
  } catch {
    throw new Error('a sealed value was altered, or belongs elsewhere');
  }
}

function derive(key: Buffer, info: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `platform-api ${info}`, KEY_BYTES));
}

function readKeyFile(path: string): string | null {
  try {
    // Restored backups and some volume mounts relax the mode.
    if (statSync(path).mode & 0o077) chmodSync(path, 0o600);
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/**
 * Written to a temporary file and linked, so that concurrent first starts use the same key, and none reads a partial
 * file.
 */
function createKeyFile(path: string, dataDir: string): string {
  makePassableDirectory(dataDir);
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  writeDurably(temporary, `${randomBytes(KEY_BYTES).toString('base64')}\n`);
  try {
    linkSync(temporary, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(temporary);
  }
  return readFileSync(path, 'utf8');
}

function writeDurably(path: string, text: string): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
