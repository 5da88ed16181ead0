// running: its health check is made at its interval, where it has one.
import type { ImageHealthCheck } from '../../../core/protocols/image_settings';
import type { Handle } from '../../../drivers/runtime';
import type { Launch } from '../../../models/applications/instance_work';
import { jittered, progressing, settled, type JobContext, type Outcome, requireHost } from '../../job';
import { restartAfterEnd } from './exit';
import { probeHealth } from './health';
import { imageHealthCheckOf } from './image';
import { findImageHealth, readIntervalMs } from './image_health';
import { hasHealthCheck, type InstanceRow } from './row';

/** The runtime notifies of the end of a unit; this is in case the notification was lost. */
const UNCHECKED_INTERVAL_MS = 60_000;

export function checkIntervalMs(row: InstanceRow, launch: Launch): number {
  const ofImage = imageHealthCheckOf(row, launch.settings);
  if (ofImage) return readIntervalMs(ofImage);
  return hasHealthCheck(row, launch) ? launch.settings.health_check.interval_seconds * 1000 : UNCHECKED_INTERVAL_MS;
}

export async function checkRunning(
  row: InstanceRow,
  launch: Launch,
  handle: Handle,
  ctx: JobContext,
): Promise<Outcome> {
  const nextMs = jittered(checkIntervalMs(row, launch));
  const { health_check } = launch.settings;
  const ofImage = imageHealthCheckOf(row, launch.settings);
  if (ofImage) return checkByImage(row, launch, handle, ofImage, ctx);
  const target = { location: requireHost(ctx).runtime.locationOf(handle.unit_id), port: row.port ?? 0 };
  const failure = hasHealthCheck(row, launch)
    ? await probeHealth(health_check, target, launch.hostname, ctx.signal)
    : null;
  if (failure === null) return settled(row.misses ? { misses: 0 } : {}, nextMs);
  const misses = row.misses + 1;
  if (misses < health_check.failure_threshold) return progressing(nextMs, { misses });
  const times = misses === 1 ? '' : ` ${misses} times in a row`;
  return restartAfterEnd(
    row,
    launch,
    handle,
    { reason: () => `The app failed its health check${times}: it ${failure}.`, fault: 'health' },
    ctx,
  );
}

/** Failures are counted where the checks run. */
async function checkByImage(
  row: InstanceRow,
  launch: Launch,
  handle: Handle,
  check: ImageHealthCheck,
  ctx: JobContext,
): Promise<Outcome> {
  const { failure, isOver } = await findImageHealth(check, handle, ctx);
  if (failure === null || !isOver) return settled({}, jittered(readIntervalMs(check)));
  const reason = `The app failed the health check of its image: it ${failure}.`;
  return restartAfterEnd(row, launch, handle, { reason: () => reason, fault: 'health' }, ctx);
}
