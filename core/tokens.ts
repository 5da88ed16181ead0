// API keys: `svc_` or `svc_proj_`, 192 random bits in base62, and a checksum, so that a typing mistake or a
// scanner for leaked keys needs no database. Only the SHA-256 of a key is stored: 192 bits need no slow hash.
import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

export type TokenKind = 'personal' | 'project';

const PREFIX: Record<TokenKind, string> = { personal: 'svc_', project: 'svc_proj_' };
const FORM = /^svc_(proj_)?[0-9A-Za-z]{39}$/;
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const SECRET_BYTES = 24;
const SECRET_LENGTH = 33;
const CHECKSUM_LENGTH = 6;
const SHOWN_LENGTH = 12;

/** A new key. `token` is shown once; `prefix` (12 characters) and `hash` (hex SHA-256) are stored. */
export function mintToken(kind: TokenKind): { token: string; prefix: string; hash: string } {
  const body = PREFIX[kind] + base62(BigInt(`0x${randomBytes(SECRET_BYTES).toString('hex')}`), SECRET_LENGTH);
  const token = body + checksum(body);
  return { token, prefix: token.slice(0, SHOWN_LENGTH), hash: sha256(token) };
}

/** Kind and hash of a key of the right form and checksum, else null. Asks no database. */
export function parseToken(text: string): { kind: TokenKind; hash: string } | null {
  const match = FORM.exec(text);
  if (!match || checksum(text.slice(0, -CHECKSUM_LENGTH)) !== text.slice(-CHECKSUM_LENGTH)) return null;
  return { kind: match[1] ? 'project' : 'personal', hash: sha256(text) };
}

/** A random value of 256 bits for sessions and one-time links. @param prefix `ses_` */
export function mintSecret(prefix: string): string {
  return prefix + randomBytes(32).toString('base64url');
}

/** Hex SHA-256 of the text in UTF-8. */
export function sha256(text: string): string {
  return hash('sha256', text);
}

function checksum(body: string): string {
  return base62(BigInt(crc32(body)), CHECKSUM_LENGTH);
}

function base62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; rest > 0n; rest /= 62n) text = ALPHABET.charAt(Number(rest % 62n)) + text;
  return text.padStart(length, '0');
}
