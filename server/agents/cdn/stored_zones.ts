// The last CDN zones, in a file that is sealed because zones of buckets hold a key: after a restart they are served at
// once, before the loop has run.
import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { replaceFile } from '../../../core/files';
import type { Logger } from '../../../core/log/log';
import type { SecretBox } from '../../../core/secrets';
import type { StoredZone, StoredZones } from '../../../engines/cdn';

const CONTEXT = 'cdn zones of the last run';
const WRITE_AFTER_MS = 500;

export function openStoredZones({
  file,
  secrets,
  log,
}: {
  file: string;
  secrets: SecretBox;
  log: Logger;
}): StoredZones {
  let waiting: (() => StoredZone[]) | null = null;
  let timer: NodeJS.Timeout | null = null;
  let writing = Promise.resolve();
  const write = (): Promise<void> => {
    if (timer) clearTimeout(timer);
    timer = null;
    const zones = waiting?.();
    waiting = null;
    if (zones)
      writing = writing
        .then(() => mkdir(path.dirname(file), { recursive: true, mode: 0o700 }))
        .then(() => replaceFile(file, secrets.seal(JSON.stringify(zones), CONTEXT)))
        .catch((error: unknown) => log.warn({ err: error }, 'The CDN zones could not be stored for the next start.'));
    return writing;
  };
  return {
    load: () => loadZones(file, secrets),
    save(zones) {
      waiting = zones;
      timer ??= setTimeout(() => void write(), WRITE_AFTER_MS).unref();
    },
    flush: write,
  };
}

/** None where the file is absent, damaged, or sealed under another key. */
function loadZones(file: string, secrets: SecretBox): StoredZone[] {
  try {
    return JSON.parse(secrets.open(readFileSync(file, 'utf8'), CONTEXT)) as StoredZone[];
  } catch {
    return [];
  }
}
