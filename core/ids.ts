// Ids: `<prefix>_` + 26 characters of lower-case Crockford base32, 48 bits of milliseconds and 80 random ones.
// They sort by creation time, which keyset paging and created_at rely on.
import { createHash, randomFillSync, randomInt } from 'node:crypto';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const BODY = /^[0-9a-hjkmnp-tv-z]{26}$/;
const BODY_LENGTH = 26;
const TIME_LENGTH = 10;
const RANDOM_LENGTH = BODY_LENGTH - TIME_LENGTH;
const TWENTY_BITS = 2 ** 20;
const FORTY_BITS = 2 ** 40;
/** All pairs of characters: ten bits per look-up. */
const PAIRS = Array.from({ length: 1024 }, (_, i) => ALPHABET.charAt(i >> 5) + ALPHABET.charAt(i & 31));

const BYTES_PER_ID = 10;
// Calls of the random generator are expensive, so random bytes for many ids are generated at once.
const pool = Buffer.allocUnsafe(BYTES_PER_ID * 512);
let poolOffset = pool.length;

let lastMs = 0;
let lastTime = '';
let high = 0;
let low = 0;

/**
 * A new id, greater than all earlier ids of this process, even if the clock steps back.
 * @param prefix of the kind, without the underscore: vol
 */
export function mintId(prefix: string): string {
  const now = Date.now();
  if (now > lastMs) startMillisecond(now);
  else nextInMillisecond();
  return `${prefix}_${lastTime}${eight(high)}${eight(low)}`;
}

/** Whether the value has the format of the kind's ids. The resource need not exist. */
export function isId(prefix: string, value: unknown): value is string {
  if (typeof value !== 'string' || value.length !== prefix.length + 1 + BODY_LENGTH) return false;
  return (
    value.startsWith(prefix) && value.charCodeAt(prefix.length) === 95 && BODY.test(value.slice(prefix.length + 1))
  );
}

/**
 * Creation time of the id, to the millisecond.
 * @throws RangeError if it is not an id
 */
export function timeOfId(id: string): Date {
  const body = id.slice(-BODY_LENGTH);
  if (!BODY.test(body)) throw new RangeError('not an id');
  let ms = 0;
  for (const character of body.slice(0, TIME_LENGTH)) ms = ms * 32 + ALPHABET.indexOf(character);
  return new Date(ms);
}

/**
 * The smallest possible id of the kind at a time, to convert time bounds to id bounds. @param time RFC 3339, since 1970
 */
export function firstIdAt(prefix: string, time: string): string {
  const ms = Math.max(0, Date.parse(time));
  const digits = Array.from({ length: TIME_LENGTH }, (_, index) =>
    ALPHABET.charAt(Math.floor(ms / 32 ** (TIME_LENGTH - 1 - index)) % 32),
  );
  return `${prefix}_${digits.join('').padEnd(BODY_LENGTH, '0')}`;
}

/**
 * The id of something that has a name elsewhere: the same wherever it is derived.
 * @param seed unique among all of the kind
 * @param time of its creation, RFC 3339, since 1970
 */
export function derivedId(prefix: string, time: string, seed: string): string {
  const digest = createHash('sha256').update(seed).digest();
  return (
    firstIdAt(prefix, time).slice(0, -RANDOM_LENGTH) + eight(digest.readUIntBE(0, 5)) + eight(digest.readUIntBE(5, 5))
  );
}

/** An id for a request. */
export function mintRequestId(): string {
  return mintId('req');
}

function startMillisecond(now: number): void {
  lastMs = now;
  lastTime =
    pair(now / 2 ** 40) +
    pair((now / 2 ** 30) % 1024) +
    pair((now / TWENTY_BITS) % 1024) +
    pair((now / 1024) % 1024) +
    pair(now % 1024);
  const offset = takeRandom();
  high = pool.readUIntBE(offset, 5);
  low = pool.readUIntBE(offset + 5, 5);
}

/** Within one millisecond, the random part is incremented by a random step. */
function nextInMillisecond(): void {
  low += 1 + pool.readUIntBE(takeRandom(), 4);
  if (low < FORTY_BITS) return;
  low -= FORTY_BITS;
  high += 1;
  if (high === FORTY_BITS) startMillisecond(lastMs + 1);
}

function takeRandom(): number {
  if (poolOffset === pool.length) {
    randomFillSync(pool);
    poolOffset = 0;
  }
  poolOffset += BYTES_PER_ID;
  return poolOffset - BYTES_PER_ID;
}

/** Encodes forty bits as eight characters. */
function eight(value: number): string {
  const upper = Math.floor(value / TWENTY_BITS);
  const lower = value % TWENTY_BITS;
  return pair(upper >>> 10) + pair(upper & 1023) + pair(lower >>> 10) + pair(lower & 1023);
}

function pair(tenBits: number): string {
  return PAIRS[Math.floor(tenBits)] as string;
}

/** A word that cannot be guessed in a few attempts, its letters drawn independently, for the ends of readable names. */
export function randomWord(letters: string, length: number): string {
  return Array.from({ length }, () => letters[randomInt(letters.length)]).join('');
}
