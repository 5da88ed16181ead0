import { setTimeout as sleep } from 'node:timers/promises';
import { unitOwners } from '../../../jobs/all_jobs';
import { wakeOwner } from '../../../models/applications/unit_owner';
import type { Platform } from '../../platform/platform';

/** A row that a step works on is woken when the step has ended; for one that is gone, nothing happens. */
const WAKE = { times: 20, everyMs: 250 };

/** Makes the row due that owns a unit. If it cannot be woken, its job still inspects it at its next interval. */
export function ownerWaker(
  { database, log }: Pick<Platform, 'database' | 'log'>,
  stopping: AbortSignal,
): (unitId: string) => void {
  const owners = unitOwners();
  const notifyOwner = async (unitId: string): Promise<void> => {
    for (let turn = 0; turn < WAKE.times && !stopping.aborted; turn += 1) {
      if (await wakeOwner(database, owners, unitId)) return;
      await sleep(WAKE.everyMs, undefined, { signal: stopping }).catch(() => {});
    }
  };
  return (unitId) =>
    void notifyOwner(unitId).catch((error: unknown) =>
      log.warn({ err: error, unit: unitId }, 'the owner of a unit that has ended could not be woken'),
    );
}
