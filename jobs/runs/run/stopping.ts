// A cancelled run has the grace time of its application to end. This may take minutes, so it runs beside the steps.
// `stopsUnderWay` only prevents a second stop; after a crash the stop goes on with the time that is left.
import { driverContext } from '../../../core/driver';
import type { Handle } from '../../../drivers/runtime';
import { makeRowsDue } from '../../../db/loop_rows';
import { findRunLaunch } from '../../../models/runs/run/work';
import { stopSignalOf } from '../../applications/instance/row';
import { type JobContext, requireHost } from '../../job';
import type { RunRow } from './row';

const stopsUnderWay = new Set<string>();
const KILL_MS = 30_000;
const DEFAULT_GRACE_SECONDS = 10;

/** SIGTERM to its programs, and SIGKILL after the grace time; the end of the unit wakes the row. */
export async function beginStop(row: RunRow, handle: Handle, ctx: JobContext): Promise<void> {
  if (stopsUnderWay.has(row.id)) return;
  const launch = await findRunLaunch(ctx.sql, row.id);
  const grace_ms = (launch?.settings.run?.shutdown_grace_seconds ?? DEFAULT_GRACE_SECONDS) * 1000;
  // A shell at a terminal ignores SIGTERM; the end of its terminal ends it.
  const signal = row.tty ? 'SIGHUP' : launch ? stopSignalOf(launch.settings) : 'SIGTERM';
  const { sql, log } = ctx;
  stopsUnderWay.add(row.id);
  void requireHost(ctx)
    .runtime.stop(handle, { grace_ms, signal }, driverContext(grace_ms + KILL_MS))
    .catch((error: unknown) => log.warn({ err: error }, 'A run could not be stopped; the platform tries again.'))
    .finally(() => stopsUnderWay.delete(row.id))
    .then(() => makeRowsDue(sql, { table: 'runs', where: 'id = $1', values: [row.id] }))
    .catch(() => {}); // the row is due again anyway
}
