// A release from RELEASES_URL.
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { fetchReleaseArchive, fetchReleaseIndex } from '../../core/releases/fetch_release';
import { newestRelease, type Release } from '../../core/releases/release_index';
import { releaseSource } from '../platform/release_source';
import { CommandError } from '../command_error';
import type { Job } from './step';

/**
 * Downloads the release of the journal's version, or the newest one.
 * @param requireRoom for so many bytes @throws CommandError, ReleaseIndexError
 */
export async function downloadRelease(
  { journal, config }: Job,
  target: string,
  requireRoom: (bytes: number) => Promise<void>,
): Promise<{ version: string; sha256: string }> {
  const source = releaseSource(config);
  if (source === null) throw new CommandError('RELEASES_URL is not set');
  const index = await fetchReleaseIndex(source);
  const release = chosen(index.releases, journal.to) ?? newestRelease(index, process.arch, journal.from);
  if (release === null) throw new CommandError(`RELEASES_URL has no version newer than ${journal.from}`);
  const archive = release.archives[process.arch];
  if (!archive) throw new CommandError(`RELEASES_URL has no ${release.version} for ${process.arch}`);
  await requireRoom(archive.size);
  const hash = createHash('sha256');
  const file = await open(target, 'w', 0o600);
  try {
    for await (const chunk of fetchReleaseArchive(source, archive.name, archive.size)) {
      hash.update(chunk);
      // Whole: a disk that is nearly full takes a part of it.
      await file.appendFile(chunk);
    }
  } finally {
    await file.close();
  }
  if (hash.digest('hex') !== archive.sha256)
    throw new CommandError(`${archive.name} is not what the index of releases says: it was cut short or changed`);
  return { version: release.version, sha256: archive.sha256 };
}

function chosen(releases: readonly Release[], version: string | null): Release | null {
  if (version === null) return null;
  const found = releases.find((release) => release.version === version);
  if (!found) throw new CommandError(`RELEASES_URL has no version ${version}`);
  return found;
}
