// The index of releases at RELEASES_URL: which versions there are, signed with Ed25519 by who makes them
// (tools/release/release_index.mjs).
import { createPublicKey, verify, type KeyObject } from 'node:crypto';
import semver from 'semver';

interface ReleaseArchive {
  name: string;
  size: number;
  sha256: string;
}

export interface Release {
  version: string;
  released_at: string;
  /** First version from which one may upgrade to it. */
  upgrades_from: string | null;
  /** What its changelog says of security; null: nothing. */
  security: string | null;
  /** Its chapter of the changelog, Markdown. */
  changes: string;
  /** By architecture, as Node.js names it. */
  archives: Record<string, ReleaseArchive>;
}

export interface ReleaseIndex {
  issued_at: string;
  /** Afterwards it is not believed: an old copy hides what has come since. */
  expires_at: string;
  releases: Release[];
}

/** One sentence on what is wrong with an index, or with the way to it. */
export class ReleaseIndexError extends Error {}

/**
 * Reads an index. Nothing in it counts before its signature.
 * @param key public key, PEM
 * @throws ReleaseIndexError
 */
export function parseReleaseIndex(text: string, key: string, now = new Date()): ReleaseIndex {
  const envelope = parseJson(text) as { signed?: unknown; signature?: unknown } | null;
  if (typeof envelope?.signed !== 'string' || typeof envelope.signature !== 'string')
    throw new ReleaseIndexError('The index of releases is malformed.');
  const signature = Buffer.from(envelope.signature, 'base64');
  if (!verify(null, Buffer.from(envelope.signed), publicKey(key), signature))
    throw new ReleaseIndexError(
      'The index of releases has a wrong signature: it is not from whoever made this release.',
    );
  const index = parseJson(envelope.signed);
  if (!isIndex(index)) throw new ReleaseIndexError('The index of releases is malformed.');
  if (!(Date.parse(index.expires_at) > now.getTime()))
    throw new ReleaseIndexError(`The index of releases expired on ${index.expires_at}, or the clock is wrong.`);
  return index;
}

/** The newest release for an architecture that one may upgrade to from a version; null: there is none. */
export function newestRelease({ releases }: ReleaseIndex, arch: string, from: string): Release | null {
  const fit = releases.filter(
    ({ version, archives, upgrades_from: least }) =>
      archives[arch] !== undefined &&
      semver.gt(version, from) &&
      (least === null || semver.gte(from, least)) &&
      // One that is being tried is for those who run such a one.
      (semver.prerelease(version) === null || semver.prerelease(from) !== null),
  );
  return fit.sort((a, b) => semver.rcompare(a.version, b.version))[0] ?? null;
}

function publicKey(pem: string): KeyObject {
  const key = tryPublicKey(pem);
  if (key?.asymmetricKeyType !== 'ed25519')
    throw new ReleaseIndexError('The key of the index of releases is not an Ed25519 public key (PEM).');
  return key;
}

function tryPublicKey(pem: string): KeyObject | null {
  try {
    return createPublicKey(pem);
  } catch {
    return null;
  }
}

function isIndex(value: unknown): value is ReleaseIndex {
  const { issued_at, expires_at, releases } = (value ?? {}) as Partial<ReleaseIndex>;
  return (
    typeof issued_at === 'string' &&
    typeof expires_at === 'string' &&
    Array.isArray(releases) &&
    releases.every(isRelease)
  );
}

function isRelease(value: unknown): value is Release {
  const one = (value ?? {}) as Partial<Release>;
  const texts = [one.version, one.released_at, one.changes].every((text) => typeof text === 'string');
  const options = [one.security, one.upgrades_from].every((text) => text === null || typeof text === 'string');
  if (!texts || !options || semver.valid(one.version) !== one.version) return false;
  if (one.upgrades_from && semver.valid(one.upgrades_from) === null) return false;
  return typeof one.archives === 'object' && one.archives !== null && Object.values(one.archives).every(isArchive);
}

function isArchive({ name, size, sha256 }: ReleaseArchive): boolean {
  return /^[\w.+-]{1,200}$/.test(name) && Number.isSafeInteger(size) && size > 0 && /^[0-9a-f]{64}$/.test(sha256);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
