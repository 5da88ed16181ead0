// The last lines of a unit that has ended.
import { setTimeout as sleep } from 'node:timers/promises';
import type { HostDrivers } from './job';

/** What a unit printed without end is not worth a longer wait: it holds up what comes next. */
const WITHIN_MS = 15_000;

/** Resolves when all that the unit has written is in the log, or after a while. False where lines were left. */
export async function shipLastLines({ shipper }: Pick<HostDrivers, 'shipper'>, unitId: string): Promise<boolean> {
  const late = new AbortController();
  const end = shipper.shipRemaining(unitId).then(() => true);
  const over = sleep(WITHIN_MS, false, { signal: late.signal, ref: false }).catch(() => false);
  try {
    return await Promise.race([end, over]);
  } finally {
    late.abort();
    // Where nobody waits any more, nobody hears its error.
    end.catch(() => {});
  }
}
