// Passwords of the dashboard: scrypt with the parameters that the OWASP Password Storage Cheat Sheet lists (N=2^17,
// r=8, p=1).
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { foldPassword, isCommonPassword } from './common_passwords';
import type { FieldErrorCode } from '../errors';
import { problem } from '../errors';
import { limits } from '../limits';

const COST = { N: 2 ** 17, r: 8, p: 1 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;

/** One hash takes 128 MiB (128 * N * r), so at most two run concurrently. */
const CONCURRENT_HASHES_MAX = 2;
/** About ten seconds of waiting; further requests are rejected, so that a flood of logins cannot pile up. */
const WAITING_MAX = 50;
/** Of these, strangers of one address. */
const WAITING_OF_ADDRESS_MAX = 20;
const RETRY_AFTER_SECONDS = '10';

interface Stored {
  N: number;
  r: number;
  p: number;
  salt: Buffer;
  hash: Buffer;
}

interface Waiting {
  /** Address of a stranger; null for a person who is known. */
  stranger: string | null;
  start(): void;
}

let running = 0;
const waiting: Waiting[] = [];

/** `scrypt$N$r$p$salt$hash`, salt and hash in base64url. @throws service_unavailable when too many are waiting */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(password, { ...COST, salt, hash: Buffer.alloc(HASH_BYTES) });
  return ['scrypt', COST.N, COST.r, COST.p, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

/**
 * Compares in constant time. Without a stored hash (an unknown user) it takes as long and returns false.
 * @param stranger address of a stranger, who waits until all others are served
 * @throws service_unavailable when too many are waiting, Error if the stored hash is malformed
 */
export async function verifyPassword(
  password: string,
  stored: string | null,
  stranger: string | null = null,
): Promise<boolean> {
  const expected = stored === null ? decoyHash() : parse(stored);
  const hash = await derive(password, expected, stranger);
  return timingSafeEqual(hash, expected.hash) && stored !== null;
}

/** Shorter words are ignored: many passwords contain them. */
const OWN_WORD_CHARACTERS_MIN = 4;
/** One to four characters, repeated. */
const REPEATED = /^(.{1,4}?)\1+$/su;

/**
 * The error in a new password, as an entry of validation_failed without its field; null for a valid one.
 * @param own e-mail and name of the person, which are the first guesses
 */
export function passwordProblem(
  password: string,
  own: readonly string[] = [],
): { code: FieldErrorCode; detail: string } | null {
  const length = [...password].length;
  if (length < limits.passwordCharactersMin)
    return { code: 'too_short', detail: `must have at least ${limits.passwordCharactersMin} characters` };
  if (length > limits.passwordCharactersMax)
    return { code: 'too_long', detail: `must have at most ${limits.passwordCharactersMax} characters` };
  const reason = guessable(password, own);
  return reason === null ? null : { code: 'invalid_format', detail: reason };
}

function guessable(password: string, own: readonly string[]): string | null {
  if (REPEATED.test(password)) return 'must not be a short text that repeats';
  if (isCommonPassword(password)) return 'must not be one of the most common passwords';
  const folded = foldPassword(password);
  // A name with digits is the second guess.
  const isOwn = own
    .flatMap((text) => [text, text.split('@')[0] as string])
    .map(foldPassword)
    .filter((word) => word.length >= OWN_WORD_CHARACTERS_MIN)
    .some((word) => folded.includes(word) && /^\d*$/.test(folded.replace(word, '')));
  return isOwn ? 'must not be the e-mail address or the name of the user' : null;
}

function decoyHash(): Stored {
  return { ...COST, salt: randomBytes(SALT_BYTES), hash: Buffer.alloc(HASH_BYTES) };
}

function parse(stored: string): Stored {
  const match = /^scrypt\$(\d+)\$(\d+)\$(\d+)\$([\w-]+)\$([\w-]+)$/.exec(stored);
  if (!match) throw new Error('a stored password hash is malformed');
  const [, N, r, p, salt = '', hash = ''] = match;
  return {
    N: Number(N),
    r: Number(r),
    p: Number(p),
    salt: Buffer.from(salt, 'base64url'),
    hash: Buffer.from(hash, 'base64url'),
  };
}

async function derive(
  password: string,
  { N, r, p, salt, hash }: Stored,
  stranger: string | null = null,
): Promise<Buffer> {
  await acquireSlot(stranger);
  try {
    return await scryptOf(password, salt, hash.length, { N, r, p, maxmem: 256 * N * r });
  } finally {
    releaseSlot();
  }
}

function scryptOf(
  password: string,
  salt: Buffer,
  length: number,
  options: { N: number; r: number; p: number; maxmem: number },
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // NFKC, so that different keyboards produce the same password (NIST SP 800-63B section 5.1.1.2).
    scrypt(password.normalize('NFKC'), salt, length, options, (error, key) => (error ? reject(error) : resolve(key)));
  });
}

async function acquireSlot(stranger: string | null): Promise<void> {
  if (running < CONCURRENT_HASHES_MAX) {
    running += 1;
    return;
  }
  // Each has a queue: those who are known do not wait behind strangers, and are not turned away because of them.
  const queue = waiting.filter((one) => (one.stranger === null) === (stranger === null));
  const ofAddress = stranger === null ? 0 : queue.filter((one) => one.stranger === stranger).length;
  if (queue.length >= WAITING_MAX || ofAddress >= WAITING_OF_ADDRESS_MAX)
    throw problem('service_unavailable', 'Too many logins at once.', {}, { 'Retry-After': RETRY_AFTER_SECONDS });
  await new Promise<void>((resolve) => waiting.push({ stranger, start: resolve }));
}

/** Passes the slot to the next waiting request, or frees it. */
function releaseSlot(): void {
  const known = waiting.findIndex(({ stranger }) => stranger === null);
  const [next] = waiting.splice(Math.max(0, known), 1);
  if (next) next.start();
  else running -= 1;
}
