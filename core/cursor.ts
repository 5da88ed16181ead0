// Opaque list cursors: a version and the end of the page, authenticated, so that clients cannot forge them, and
// encrypted, since sequence numbers would reveal the activity of other tenants.
import { createCipheriv, createDecipheriv, createHmac, hash, timingSafeEqual, type KeyObject } from 'node:crypto';
import { problem } from './errors';
import { limits } from './limits';

/** The end of a page: the sort key and id of its last row. */
export interface Cursor {
  /** Sort as the client wrote it, `-created_at`. */
  sort: string;
  /** From hashFilters. */
  filters: string;
  key: string | number | null;
  id: string;
}

export interface CursorCodec {
  encode(cursor: Cursor): string;
  /** @throws invalid_cursor if it is altered, of another version, or of another sort or other filters */
  decode(text: string, expect: { sort: string; filters: string }): Cursor;
  /** The same for a read position in a followed list. @param list from hashFilters */
  conceal(list: string, position: string): string;
  /** @throws invalid_cursor if it is altered or of another list */
  reveal(list: string, text: string): string;
}

const VERSION = 1;
/**
 * Half a SHA-256: 128 bits cannot be guessed, and the cursor stays short. Also the initialisation vector of the cipher.
 */
const SEAL_BYTES = 16;

/** @param sealing at least 32 bytes, the same on every replica */
export function cursorCodec(sealing: KeyObject): CursorCodec {
  const box = sealedBox(sealing);
  return {
    encode: ({ sort, filters, key, id }) => box.close(JSON.stringify([VERSION, sort, filters, key, id])),
    decode(text, expect) {
      const cursor = parseCursor(box.open(text));
      if (!cursor || cursor.sort !== expect.sort || cursor.filters !== expect.filters) throw problem('invalid_cursor');
      return cursor;
    },
    conceal: (list, position) => box.close(beginningOf(list) + position),
    reveal(list, text) {
      const content = box.open(text);
      if (!content?.startsWith(beginningOf(list))) throw problem('invalid_cursor');
      return content.slice(beginningOf(list).length);
    },
  };
}

/** Prefix of a read position. It differs from cursors, which are JSON arrays. */
const beginningOf = (list: string): string => `at ${list} `;

/**
 * A short hash of all parameters that select the rows of a list (project, parent, filters). Absent and undefined are
 * equal.
 */
export function hashFilters(values: Record<string, unknown>): string {
  const present = Object.entries(values).filter(([, value]) => value !== undefined);
  present.sort(([a], [b]) => (a < b ? -1 : 1));
  return hash('sha256', JSON.stringify(present), 'base64url').slice(0, 16);
}

function parseCursor(content: string | null): Cursor | null {
  if (!content?.startsWith('[')) return null;
  const [version, sort, filters, key, id] = JSON.parse(content) as [number, string, string, Cursor['key'], string];
  return version === VERSION ? { sort, filters, key, id } : null;
}

interface SealedBox {
  close(content: string): string;
  /** null for a text that was not sealed by this box. */
  open(text: string): string | null;
}

// The seal is derived from the content, so equal contents give equal texts, and no other content has the same
// initialisation vector (the construction of RFC 5297).
function sealedBox(sealing: KeyObject): SealedBox {
  const encryption = createHmac('sha256', sealing).update('encryption of cursors').digest();
  const sealOf = (content: Buffer): Buffer =>
    createHmac('sha256', sealing).update(content).digest().subarray(0, SEAL_BYTES);
  return {
    close(text) {
      const content = Buffer.from(text);
      const seal = sealOf(content);
      return Buffer.concat([seal, createCipheriv(CIPHER, encryption, seal).update(content)]).toString('base64url');
    },
    open(text) {
      if (text.length > limits.cursorCharactersMax) return null;
      const bytes = Buffer.from(text, 'base64url');
      // Node's decoder skips foreign characters and ignores spare bits: only the one true spelling is taken.
      if (bytes.length <= SEAL_BYTES || bytes.toString('base64url') !== text) return null;
      const seal = bytes.subarray(0, SEAL_BYTES);
      const content = createDecipheriv(CIPHER, encryption, seal).update(bytes.subarray(SEAL_BYTES));
      return timingSafeEqual(seal, sealOf(content)) ? content.toString() : null;
    },
  };
}

const CIPHER = 'aes-256-ctr';
