// Beside the loop of a host: the end of a unit is told to the row that it belongs to, and what has no row is removed.
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../drivers/driver';
import { sweepHost } from '../jobs/host_sweep';
import type { HostDrivers } from '../jobs/job';
import { wakeUnit } from '../models/instance_work';
import type { Platform } from '../platform/platform';

const SWEEP_EVERY_MS = 3_600_000;
const SWEEP_WITHIN_MS = 600_000;
/** A row that a step works on is told when the step has ended; one that is gone, in vain. */
const TELL = { times: 20, everyMs: 250 };

/** Begins at once; the first sweep runs in the background. */
export function startUnitWatch(
  { database, log }: Pick<Platform, 'database' | 'log'>,
  host: HostDrivers,
): { close(): Promise<void> } {
  const stopping = new AbortController();
  // A row that nobody woke is looked at by its job, only later.
  const tell = async (unitId: string): Promise<void> => {
    for (let turn = 0; turn < TELL.times && !stopping.signal.aborted; turn += 1) {
      if (await wakeUnit(database, unitId)) return;
      await sleep(TELL.everyMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  };
  const stopWatching = host.runtime.watch(
    (unitId) =>
      void tell(unitId).catch((error: unknown) =>
        log.warn({ err: error, unit: unitId }, 'the end of a unit could not be told'),
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
