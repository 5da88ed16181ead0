// Asks the index at RELEASES_URL once a day for a newer release, for the dashboard to announce it.
import { fetchReleaseIndex } from '../../core/releases/fetch_release';
import { newestRelease } from '../../core/releases/release_index';
import { repeatWork } from '../../core/process/background';
import { claimReleaseCheck, noteRelease, retryReleaseCheck } from '../../models/identity/installation';
import type { Platform } from './platform';
import { releaseSource } from './release_source';

const CHECK_EVERY_MS = 5 * 60_000;

/** Stops with the returned function. */
export function startReleaseNotice({ config, database, log }: Platform): () => Promise<void> {
  if (config.releasesUrl === null || !config.releasesNotice) return async () => {};
  const failure = 'The index of releases could not be read: nobody learns of newer versions.';
  const work = repeatWork({ name: 'release_notice', everyMs: CHECK_EVERY_MS, log, failure }, async () => {
    if (!(await claimReleaseCheck(database))) return;
    try {
      const source = releaseSource(config);
      if (source === null) return;
      const index = await fetchReleaseIndex(source);
      await noteRelease(database, newestRelease(index, process.arch, source.version));
    } catch (error) {
      await retryReleaseCheck(database);
      throw error;
    }
  });
  work.runNow();
  return () => work.stop();
}
