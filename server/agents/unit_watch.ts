// Beside the loop of a host: the end of a unit wakes the row that owns it, and what has no row is removed.
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../core/driver';
import { sweepHost } from '../../jobs/host_sweep';
import type { HostDrivers } from '../../jobs/job';
import { unitOwners } from '../../jobs/all_jobs';
import { wakeOwner } from '../../models/applications/unit_owner';
import type { Platform } from '../platform/platform';

const SWEEP_EVERY_MS = 3_600_000;
const SWEEP_WITHIN_MS = 600_000;
/** A row that a step works on is woken when the step has ended; for one that is gone, nothing happens. */
const WAKE = { times: 20, everyMs: 250 };

/** Begins at once; the first sweep runs in the background. */
export function startUnitWatch(
  { database, log }: Pick<Platform, 'database' | 'log'>,
  host: HostDrivers,
): { close(): Promise<void> } {
  const stopping = new AbortController();
  const owners = unitOwners();
  // If the row cannot be woken, its job still inspects it at its next interval.
  const notifyOwner = async (unitId: string): Promise<void> => {
    for (let turn = 0; turn < WAKE.times && !stopping.signal.aborted; turn += 1) {
      if (await wakeOwner(database, owners, unitId)) return;
      await sleep(WAKE.everyMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  };
  const stopWatching = host.runtime.watch(
    (unitId) =>
      void notifyOwner(unitId).catch((error: unknown) =>
        log.warn({ err: error, unit: unitId }, 'the owner of a unit that has ended could not be woken'),
      ),
  );
  let sweeping = Promise.resolve();
  const sweep = (): void => {
    sweeping = sweeping
      .then(() => sweepHost(database, host, log, driverContext(SWEEP_WITHIN_MS, stopping.signal)))
      .then(
        () => {},
        (error: unknown) => void log.warn({ err: error }, 'the look for orphans did not end'),
      );
  };
  const timer = setInterval(sweep, SWEEP_EVERY_MS);
  sweep();
  return {
    async close() {
      clearInterval(timer);
      stopping.abort();
      stopWatching();
      await sweeping;
    },
  };
}
