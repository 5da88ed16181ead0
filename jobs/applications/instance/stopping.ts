// stopping: no new requests; open requests are drained; then the unit gets its signal. This may take minutes, so it
// runs beside the steps. `stopsUnderWay` only prevents a second run; after a crash the stop starts again.
import { driverContext } from '../../../core/driver';
import type { Handle } from '../../../drivers/runtime';
import { findLaunch } from '../../../models/applications/instance_work';
import { wakeRows } from '../../../db/loop_rows';
import { gone, progressing, type HostDrivers, type JobContext, type Outcome, requireHost } from '../../job';
import { shipLastLines } from '../../unit_log';
import { appendInstanceLog, stopSignalOf, WEB, type InstanceRow } from './row';

const stopsUnderWay = new Set<string>();

/** The end of the stop wakes the row; polling covers a failed wake-up. */
const POLL_MS = 2_000;
const KILL_MS = 30_000;
const DEFAULT_GRACE_SECONDS = 10;

export async function stopInstance(row: InstanceRow, ctx: JobContext): Promise<Outcome> {
  const { runtime } = requireHost(ctx);
  const handle = row.handle ?? (await runtime.find(row.id));
  if (handle && (await runtime.inspect(handle)).state === 'running') {
    await beginStop(row, handle, ctx);
    return progressing(POLL_MS);
  }
  if (handle) await shipLastLines(requireHost(ctx), row.id);
  await runtime.destroy(row.id, ctx);
  await ctx.record({ handle: null, port: null, deleted_at: new Date().toISOString() });
  return gone;
}

async function beginStop(row: InstanceRow, handle: Handle, ctx: JobContext): Promise<void> {
  if (stopsUnderWay.has(row.id)) return;
  const launch = await findLaunch(ctx.sql, row.id);
  const graceMs = (launch?.settings.run.shutdown_grace_seconds ?? DEFAULT_GRACE_SECONDS) * 1000;
  const signal = launch ? stopSignalOf(launch.settings) : 'SIGTERM';
  // Shells print "Terminated" when their program ends by it.
  await appendInstanceLog(row, ctx, `Stopping. Its processes get ${signal}, and ${graceMs / 1000} seconds to end.`);
  stopsUnderWay.add(row.id);
  const { sql, log } = ctx;
  void drainAndStop(row, handle, { graceMs, signal }, requireHost(ctx))
    .catch((error: unknown) => log.warn({ err: error }, 'An instance could not be stopped; the platform tries again.'))
    .finally(() => stopsUnderWay.delete(row.id))
    .then(() => wakeRows(sql, { table: 'instances', where: 'id = $1', values: [row.id] }))
    .catch(() => {}); // the row is due again anyway
}

async function drainAndStop(
  row: InstanceRow,
  handle: Handle,
  { graceMs, signal }: { graceMs: number; signal: NodeJS.Signals },
  { ingress, runtime }: HostDrivers,
): Promise<void> {
  if (row.process_type === WEB) await ingress.drain(row.id, graceMs);
  await runtime.stop(handle, { grace_ms: graceMs, signal }, driverContext(graceMs + KILL_MS));
}
