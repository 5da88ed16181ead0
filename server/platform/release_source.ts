// Where this installation gets newer releases from.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../../core/config';
import type { ReleaseSource } from '../../core/releases/fetch_release';
import { ReleaseIndexError } from '../../core/releases/release_index';
import { version } from '../../package.json';

/** Beside the directory `app` of a release (tools/release/release.mjs). */
const SHIPPED_KEY = path.resolve(__dirname, '../../../../release-key.pem');

type Settings = Pick<Config, 'releasesUrl' | 'releasesKeyFile' | 'dnsResolvers'>;

/** @returns null without RELEASES_URL @throws ReleaseIndexError where there is no key */
export function releaseSource({ releasesUrl, releasesKeyFile, dnsResolvers }: Settings): ReleaseSource | null {
  if (releasesUrl === null) return null;
  const file = releasesKeyFile ?? SHIPPED_KEY;
  try {
    return { url: releasesUrl, key: readFileSync(file, 'utf8'), version, resolvers: dnsResolvers };
  } catch (error) {
    if (releasesKeyFile === null)
      throw new ReleaseIndexError('This release came without a key for RELEASES_URL: set RELEASES_KEY_FILE.');
    throw new ReleaseIndexError(`RELEASES_KEY_FILE ${file} cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
}
