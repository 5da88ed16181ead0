// Opaque cursors of lists: a version, where the page ended, and a seal, so that clients can't make or alter one.
import { createHmac, hash, timingSafeEqual, type KeyObject } from 'node:crypto';
import { problem } from './errors';
import { limits } from './limits';

/** Where a page ended: the sort key and id of its last row. */
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
  /** @throws invalid_cursor if it was altered, is of another version, or belongs to another sort or other filters */
  decode(text: string, expect: { sort: string; filters: string }): Cursor;
}

const VERSION = 1;
/** Half a SHA-256: 128 bits can't be guessed, and the cursor stays short. */
const SEAL_BYTES = 16;

/** @param sealing of at least 32 bytes, the same on every replica */
export function cursorCodec(sealing: KeyObject): CursorCodec {
  return {
    encode: (cursor) => write(sealing, cursor),
    decode(text, expect) {
      const cursor = read(sealing, text);
      if (!cursor || cursor.sort !== expect.sort || cursor.filters !== expect.filters) throw problem('invalid_cursor');
      return cursor;
    },
  };
}

/**
 * A short hash of everything that selects the rows of a list (project, parent, filters). Absent and undefined are the
 * same.
 */
export function hashFilters(values: Record<string, unknown>): string {
  const present = Object.entries(values).filter(([, value]) => value !== undefined);
  present.sort(([a], [b]) => (a < b ? -1 : 1));
  return hash('sha256', JSON.stringify(present), 'base64url').slice(0, 16);
}

function write(sealing: KeyObject, cursor: Cursor): string {
  const content = Buffer.from(JSON.stringify([VERSION, cursor.sort, cursor.filters, cursor.key, cursor.id]));
  return Buffer.concat([seal(sealing, content), content]).toString('base64url');
}

function read(sealing: KeyObject, text: string): Cursor | null {
  if (text.length > limits.cursorCharactersMax) return null;
  const bytes = Buffer.from(text, 'base64url');
  // Node's decoder skips foreign characters and ignores spare bits: only the one true spelling is taken.
  if (bytes.length <= SEAL_BYTES || bytes.toString('base64url') !== text) return null;
  const content = bytes.subarray(SEAL_BYTES);
  if (!timingSafeEqual(bytes.subarray(0, SEAL_BYTES), seal(sealing, content))) return null;
  const [version, sort, filters, key, id] = JSON.parse(content.toString()) as [
    number,
    string,
    string,
    Cursor['key'],
    string,
  ];
  return version === VERSION ? { sort, filters, key, id } : null;
}

function seal(sealing: KeyObject, content: Buffer): Buffer {
  return createHmac('sha256', sealing).update(content).digest().subarray(0, SEAL_BYTES);
}
