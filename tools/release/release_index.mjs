// The index of releases: what `platform upgrade` and the dashboard read at RELEASES_URL (core/releases/).
import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';

const INDEX = 'releases.json';
/** Signed anew by then, also without a release: a copy that somebody withholds the newer ones with ends. */
const VALID_DAYS = 180;
const CHANGES_MAX = 20_000;

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

/** What the changelog says of a version: its chapter, and of that the part on security. */
export function changesOf(changelog, version) {
  const chapter = chapterOf(changelog, 2, (title) => title.replace(/^\[?v?/, '').startsWith(version));
  const security = chapter && chapterOf(chapter, 3, (title) => title === 'Security');
  return { changes: (chapter ?? '').slice(0, CHANGES_MAX), security: security?.slice(0, CHANGES_MAX) || null };
}

function chapterOf(text, level, isIt) {
  const lines = text.split('\n');
  const marks = '#'.repeat(level);
  const start = lines.findIndex((line) => line.startsWith(`${marks} `) && isIt(line.slice(level + 1).trim()));
  if (start < 0) return null;
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => new RegExp(`^#{1,${level}} `).test(line));
  return rest.slice(0, end < 0 ? undefined : end).join('\n').trim();
}
