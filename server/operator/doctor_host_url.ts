// Whether uploads of sources and downloads of backups reach the process that has the files.
import type { Config } from '../../core/config';
import { trusted } from '../../core/outbound/client';
import { openControlDatabase } from '../../db/control_database';
import { uploadsMark } from '../../drivers/source/upload_files';
import { sharesFilesOfHost } from '../../models/deployments/source_upload';
import type { Finding } from './finding';

const CHECK = 'files of the host';
const WITHIN_MS = 3_000;
const LOST = 'uploads of sources and downloads of backups fail at this process';

/** Nothing where this process does the work of the host itself. */
export async function hostUrl(config: Config): Promise<Finding[]> {
  const found = config.hostUrl === null ? [] : [await reach(config.hostUrl)];
  const isPassedOn = config.hostUrl !== null && config.fileStore === null;
  // An embedded database is below the directories of the host.
  if (isPassedOn || config.worker !== 'separate' || config.databaseUrl === null) return found;
  return [...found, await share(config, config.databaseUrl)];
}

async function reach(url: string): Promise<Finding> {
  const address = `${url.replace(/\/+$/, '')}/healthz`;
  const answer = await trusted(address, { within: { ms: WITHIN_MS, of: 'response' }, redirects: 'returned' }).then(
    async (response) => ({ text: await response.text() }),
    (error: NodeJS.ErrnoException) => ({ error: reasonOf(error) }),
  );
  if ('error' in answer)
    return { check: CHECK, status: 'failed', detail: `HOST_URL: ${url} does not answer (${answer.error}): ${LOST}` };
  if (answer.text.includes('"status":"ok"'))
    return { check: CHECK, status: 'ok', detail: `a process of the API answers at ${url} (HOST_URL)` };
  return { check: CHECK, status: 'failed', detail: `HOST_URL: at ${url} answers something else: ${LOST}` };
}

function reasonOf({ code, name }: NodeJS.ErrnoException): string {
  if (name === 'TimeoutError') return `within ${WITHIN_MS / 1000} seconds`;
  return code ?? name;
}

async function share(config: Config, url: string): Promise<Finding> {
  const database = openControlDatabase(url, { poolSize: 1, name: 'platform-api doctor' });
  try {
    const shares = await sharesFilesOfHost({
      sql: database,
      probes: { sourceUploadsMark: () => uploadsMark(config) },
    });
    if (shares === false)
      return {
        ...{ check: CHECK, status: 'warning' },
        detail:
          config.fileStore === null
            ? `HOST_URL is not set, and this process does not share the data directory with the worker: ${LOST}`
            : 'FILE_STORE is not the one of the worker: uploads of sources are refused at this process',
      };
    const shared = config.fileStore === null ? 'the data directory' : 'FILE_STORE';
    const detail = shares ? `this process shares ${shared} with the worker` : 'no worker has begun yet';
    return { check: CHECK, status: 'ok', detail };
  } finally {
    await database.close();
  }
}
