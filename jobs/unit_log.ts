// The last lines of a unit that has ended.
import { setTimeout as sleep } from 'node:timers/promises';
import type { HostDrivers } from './job';

/** Limit for units with endless output: waiting for all of it would delay the next step. */
const WITHIN_MS = 15_000;

/** Resolves when all output of the unit is in the log, or after WITHIN_MS. False if lines were left. */
export async function shipLastLines({ shipper }: Pick<HostDrivers, 'shipper'>, unitId: string): Promise<boolean> {
  const late = new AbortController();
  const end = shipper.shipRemaining(unitId).then(() => true);
  const over = sleep(WITHIN_MS, false, { signal: late.signal, ref: false }).catch(() => false);
  try {
    return await Promise.race([end, over]);
  } finally {
    late.abort();
    // No caller awaits `end` any more: its rejection must not be unhandled.
    end.catch(() => {});
  }
}
