// running: its health is asked for now and then, where that is wanted.
import type { Handle } from '../../drivers/runtime';
import type { Launch } from '../../models/instance_work';
import { around, progressing, settled, type JobContext, type Outcome } from '../job';
import { restartAfterEnd } from './exit';
import { probeHealth } from './health';
import { isChecked, type InstanceRow } from './row';

/** The end of a unit is told by its watch; this is in case nobody heard it. */
const UNCHECKED_INTERVAL_MS = 60_000;

export function checkIntervalMs(row: InstanceRow, launch: Launch): number {
  return isChecked(row, launch) ? launch.settings.health_check.interval_seconds * 1000 : UNCHECKED_INTERVAL_MS;
}

export async function checkRunning(
  row: InstanceRow,
  launch: Launch,
  handle: Handle,
  ctx: JobContext,
): Promise<Outcome> {
  const nextMs = around(checkIntervalMs(row, launch));
  const { health_check } = launch.settings;
  const said = isChecked(row, launch)
    ? await probeHealth(health_check, row.port ?? 0, launch.hostname, ctx.signal)
    : null;
  if (said === null) return settled(row.misses ? { misses: 0 } : {}, nextMs);
  const misses = row.misses + 1;
  if (misses < health_check.failure_threshold) return progressing(nextMs, { misses });
  const times = misses === 1 ? '' : ` ${misses} times in a row`;
  return restartAfterEnd(
    row,
    launch,
    handle,
    { reason: `The app failed its health check${times}: it ${said}.`, fault: 'health' },
    ctx,
  );
}
