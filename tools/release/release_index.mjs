// The index of releases: what `platform upgrade` and the dashboard read at RELEASES_URL (core/releases/).
import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';

const INDEX = 'releases.json';
/** Signed anew by then, also without a release: a copy that somebody withholds the newer ones with ends. */
const VALID_DAYS = 180;

/** @returns the public key of a file with a private one of Ed25519, PEM; null without a file */
export function publicKeyOf(file) {
  if (!file) return null;
  const key = createPrivateKey(fs.readFileSync(file));
  if (key.asymmetricKeyType !== 'ed25519') throw new Error(`${file} is no private key of Ed25519`);
  return createPublicKey(key).export({ type: 'spki', format: 'pem' });
}

/**
 * Adds a release to the index of a folder, or replaces what it says of it, and signs it.
 * @param release null: only signs anew
 */
export function writeIndex(folder, keyFile, release, now = new Date()) {
  const file = path.join(folder, INDEX);
  const before = fs.existsSync(file) ? JSON.parse(JSON.parse(fs.readFileSync(file, 'utf8')).signed).releases : [];
  const same = before.find(({ version }) => version === release?.version);
  const added = release && { ...release, archives: { ...same?.archives, ...release.archives } };
  const releases = [...before.filter((one) => one !== same || !added), ...(added ? [added] : [])];
  const expires = new Date(now.getTime() + VALID_DAYS * 86_400_000);
  const signed = JSON.stringify({ issued_at: now.toISOString(), expires_at: expires.toISOString(), releases });
  const signature = sign(null, Buffer.from(signed), createPrivateKey(fs.readFileSync(keyFile))).toString('base64');
  fs.writeFileSync(`${file}.new`, `${JSON.stringify({ signed, signature })}\n`);
  fs.renameSync(`${file}.new`, file);
  return file;
}
