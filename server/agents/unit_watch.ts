// Beside the loop of a host: the end of a unit wakes the row that owns it, and what has no row is removed.
import { driverContext } from '../../core/driver';
import { repeatWork } from '../../core/process/background';
import { sweepHost } from '../../jobs/host_sweep';
import type { HostDrivers } from '../../jobs/job';
import type { Platform } from '../platform/platform';
import { ownerWaker } from './workloads/owner_waker';

const SWEEP_EVERY_MS = 3_600_000;
const SWEEP_WITHIN_MS = 600_000;

/** Begins at once; the first sweep runs in the background. */
export function startUnitWatch(
  { database, log }: Pick<Platform, 'database' | 'log'>,
  host: HostDrivers,
): { close(): Promise<void> } {
  const stopping = new AbortController();
  const wakeOwnerOf = ownerWaker({ database, log }, stopping.signal);
  const stopWatching = host.runtime.watch(wakeOwnerOf);
  const failure = 'the look for orphans did not end';
  const sweeping = repeatWork({ name: 'orphaned_units', everyMs: SWEEP_EVERY_MS, log, failure }, () =>
    sweepHost(database, host, log, driverContext(SWEEP_WITHIN_MS, stopping.signal)),
  );
  sweeping.runNow();
  return {
    async close() {
      stopping.abort();
      stopWatching();
      await sweeping.stop();
    },
  };
}
