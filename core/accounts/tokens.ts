// API keys: `svc_` or `svc_proj_`, 192 random bits in base62, and a checksum, so that typing errors and leak scanners
// need no database access. Only the SHA-256 of a key is stored: 192 bits need no slow hash. Access tokens of the
// authorisation server have the same format, `svc_oauth_`, and so have keys of probes, `svc_probe_`, which the API does
// not accept.
import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

export type TokenKind = 'personal' | 'project' | 'oauth';

/** Prefix of access tokens. */
export const OAUTH_PREFIX = 'svc_oauth_';

const PREFIX: Record<TokenKind, string> = { personal: 'svc_', project: 'svc_proj_', oauth: OAUTH_PREFIX };
const FORM = /^svc_(proj_|oauth_)?[0-9A-Za-z]{39}$/;
const KINDS: Record<string, TokenKind> = { proj_: 'project', oauth_: 'oauth' };
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PROBE_PREFIX = 'svc_probe_';
const PROBE_FORM = /^svc_probe_[0-9A-Za-z]{39}$/;
const SECRET_BYTES = 24;
const SECRET_LENGTH = 33;
const CHECKSUM_LENGTH = 6;
const SHOWN_LENGTH = 12;

/** Creates a key. `token` is shown once; `prefix` (12 characters) and `hash` (hex SHA-256) are stored. */
export function mintToken(kind: TokenKind): { token: string; prefix: string; hash: string } {
  const token = mint(PREFIX[kind]);
  return { token, prefix: token.slice(0, SHOWN_LENGTH), hash: sha256(token) };
}

/** Creates a key for a probe, shown once; `hash` (hex SHA-256) is stored. */
export function mintProbeToken(): { token: string; prefix: string; hash: string } {
  const token = mint(PROBE_PREFIX);
  return { token, prefix: token.slice(0, PROBE_PREFIX.length + 4), hash: sha256(token) };
}

/** Hash of a well-formed probe key with a valid checksum, else null. */
export function parseProbeToken(text: string): string | null {
  return PROBE_FORM.test(text) && isWhole(text) ? sha256(text) : null;
}

/** Kind and hash of a well-formed key with a valid checksum, else null. Does not access the database. */
export function parseToken(text: string): { kind: TokenKind; hash: string } | null {
  const match = FORM.exec(text);
  if (!match || !isWhole(text)) return null;
  return { kind: KINDS[match[1] ?? ''] ?? 'personal', hash: sha256(text) };
}

/** A random value of 256 bits for sessions and one-time links. @param prefix `ses_` */
export function mintSecret(prefix: string): string {
  return prefix + randomBytes(32).toString('base64url');
}

/** Hex SHA-256 of the text in UTF-8. */
export function sha256(text: string): string {
  return hash('sha256', text);
}

function mint(prefix: string): string {
  const body = prefix + base62(BigInt(`0x${randomBytes(SECRET_BYTES).toString('hex')}`), SECRET_LENGTH);
  return body + checksum(body);
}

function isWhole(token: string): boolean {
  return checksum(token.slice(0, -CHECKSUM_LENGTH)) === token.slice(-CHECKSUM_LENGTH);
}

function checksum(body: string): string {
  return base62(BigInt(crc32(body)), CHECKSUM_LENGTH);
}

function base62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; rest > 0n; rest /= 62n) text = ALPHABET.charAt(Number(rest % 62n)) + text;
  return text.padStart(length, '0');
}
