// Uploads that this machine has received before there was a file store are copied to it, from where other machines have
// them.
import { driverContext } from '../../core/driver';
import { repeatWork } from '../../core/process/background';
import type { UploadFiles } from '../../drivers/source/upload_files';
import { withoutUploadRow } from '../../models/deployments/source_upload/job_queries';
import type { Platform } from '../platform/platform';

const EVERY_MS = 10 * 60_000;
const WITHIN_MS = 3_600_000;

/** Begins at once. @returns how to stop */
export function startUploadCopies(
  { database, fileStore, log }: Pick<Platform, 'database' | 'fileStore' | 'log'>,
  uploads: Pick<UploadFiles, 'storeAll'>,
): () => Promise<void> {
  if (!fileStore) return async () => undefined;
  const stopping = new AbortController();
  const owned = async (ids: string[]): Promise<string[]> => {
    const gone = new Set(await withoutUploadRow(database, ids));
    return ids.filter((id) => !gone.has(id));
  };
  const failure = 'uploads could not be copied to the file store';
  const copying = repeatWork({ name: 'upload_copies', everyMs: EVERY_MS, log, failure }, () =>
    uploads.storeAll(owned, driverContext(WITHIN_MS, stopping.signal)),
  );
  copying.runNow();
  return () => {
    stopping.abort();
    return copying.stop();
  };
}
