// Uploads what databases have archived to the store of the operator as it comes, and sweeps the store now and then.
// A store that is away is waited for: until then the archive lies on this host.
import type { Config } from '../../core/config';
import type { Logger } from '../../core/log/log';
import { pauseMsAfter } from '../../core/process/backoff';
import { openBackupStore } from '../../drivers/backup_store/open';
import { ABANDONED_MS, sweepBackupStore } from '../../drivers/backup_store/sweep';
import { driverContext } from '../../core/driver';
import type { EngineDriver } from '../../drivers/database';

const PAUSE_MS = 5_000;
const BACKOFF = { firstMs: 2 * PAUSE_MS, maxMs: 60_000 };
const PASS_WITHIN_MS = 3_600_000;
const SWEEP_EVERY_MS = 24 * 3_600_000;

interface BackupStoreParts {
  config: Config;
  engines: Iterable<Pick<EngineDriver, 'name' | 'storeArchives'>>;
  log: Logger;
}

interface BackupStoreAgent {
  stop(): Promise<void>;
}

/** @returns null where backups stay on the host */
export function startBackupStore(parts: BackupStoreParts): BackupStoreAgent | null {
  const store = openBackupStore(parts.config);
  if (!store) return null;
  parts.log.info({ store: store.address }, 'backups of databases are kept in a store');
  const stopping = new AbortController();
  let sweptAt = -Infinity;
  const pass = async (): Promise<void> => {
    const ctx = driverContext(PASS_WITHIN_MS, stopping.signal);
    for (const engine of parts.engines) await engine.storeArchives?.(ctx);
    if (performance.now() - sweptAt < SWEEP_EVERY_MS) return;
    const removed = await sweepBackupStore(store, ABANDONED_MS, ctx);
    sweptAt = performance.now();
    if (removed > 0) parts.log.warn({ files: removed }, 'files of unfinished backups were removed from the store');
  };
  const ended = repeat(pass, stopping.signal, parts.log);
  return {
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}

async function repeat(pass: () => Promise<void>, stop: AbortSignal, log: Logger): Promise<void> {
  let failures = 0;
  for (; !stop.aborted; await pause(failures > 0 ? pauseMsAfter(failures, BACKOFF) : PAUSE_MS, stop)) {
    try {
      await pass();
      if (failures > 0) log.info('the backup store answers again');
      failures = 0;
    } catch (error) {
      if (stop.aborted) return;
      log.warn({ err: error }, 'the archive of databases could not be brought to the backup store');
      failures += 1;
    }
  }
}

function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      stop.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    stop.addEventListener('abort', end);
    if (stop.aborted) end();
  });
}
