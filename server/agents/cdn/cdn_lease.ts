// For how long purges wait for the cache of a further ingress. It is renewed in the database; a cache that could not
// renew it in time answers from the origin alone until it has done what it missed.
import { randomUUID } from 'node:crypto';
import type { Logger } from '../../../core/log/log';
import { repeatWork } from '../../../core/process/background';
import type { ControlDatabase } from '../../../db/control_database';
import { CACHE_LEASE_MS, removeCache, renewCache } from '../../../models/cdn/cdn_purge/progress';

export interface CacheLease {
  /** Of this run: a cache begins empty. */
  readonly id: string;
  /** Whether purges wait for this cache now. */
  isCurrent(): boolean;
  /** A time of the database at which the cache had done all purges; null before it has begun. */
  caughtUpAt(): string | null;
  /** @param catchUp resolves when all purges are done that were made by its call */
  start(catchUp: () => Promise<void>): { first: Promise<void>; close(): Promise<void> };
}

const RENEW_EVERY_MS = 2_000;
/** Less than the lease, for clocks that do not go alike. */
const CURRENT_MS = CACHE_LEASE_MS - 2_000;

export function openCacheLease({ database, log }: { database: ControlDatabase; log: Logger }): CacheLease {
  const id = randomUUID();
  let currentUntil = -Infinity;
  let caughtUpAt: string | null = null;
  let isClosed = false;
  const isCurrent = (): boolean => performance.now() < currentUntil;
  return {
    ...{ id, isCurrent, caughtUpAt: () => caughtUpAt },
    start(catchUp) {
      const renew = async (): Promise<void> => {
        const begunAt = performance.now();
        const now = await renewCache(database, id);
        caughtUpAt ??= now;
        // What still counts stays so while the purges are read: from this renewal on they wait for this cache.
        if (isCurrent()) currentUntil = begunAt + CURRENT_MS;
        await catchUp().catch(async (error: unknown) => {
          // It keeps nothing by now: purges of all zones would wait for one that cannot be done.
          if (!isCurrent()) await removeCache(database, id).catch(() => undefined);
          throw error;
        });
        caughtUpAt = now;
        if (!isClosed) currentUntil = begunAt + CURRENT_MS;
      };
      const failure = 'The cache of CDN zones could not be renewed. Requests go to the origins meanwhile.';
      const renewing = repeatWork({ name: 'cdn_cache_renewal', everyMs: RENEW_EVERY_MS, log, failure }, renew);
      const first = renew().catch((error: unknown) => log.warn({ err: error }, failure));
      return {
        first,
        async close() {
          isClosed = true;
          await renewing.stop();
          currentUntil = -Infinity;
          await removeCache(database, id).catch(() => undefined);
        },
      };
    },
  };
}
