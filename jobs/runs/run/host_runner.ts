// Runs as units of this host.
import { requireHost, type JobContext } from '../../job';
import { shipLastLines } from '../../unit_log';
import type { Runner } from './runner';
import type { RunRow } from './row';
import { unitSpecOf } from './unit';
import { enteringSpecOf, isEntering } from './within';
import { driverContext } from '../../../core/driver';
import type { Handle } from '../../../drivers/runtime';
import { makeRowsDue } from '../../../db/loop_rows';
import { findRunLaunch } from '../../../models/runs/run/job_queries';
import { stopSignalOf } from '../../applications/instance/row';

export const hostRunner: Runner = {
  lost: 'The processes of the run were lost when the host was restarted.',
  async inspect(row, ctx) {
    const { runtime } = requireHost(ctx);
    const handle = await runtime.find(row.id);
    const state = handle && (await runtime.inspect(handle));
    if (!state || state.state === 'gone') return null;
    if (state.state === 'running') return { ...state, started_at: row.started_at ?? new Date().toISOString() };
    return { ...state, reason: null, started_at: row.started_at };
  },
  async start(row, ctx) {
    const spec = isEntering(row) ? await enteringSpecOf(row, ctx) : await unitSpecOf(row, ctx);
    await requireHost(ctx).runtime.start(spec, ctx);
  },
  async stop(row, ctx) {
    const handle = await requireHost(ctx).runtime.find(row.id);
    if (handle) await beginStop(row, handle, ctx);
  },
  async shipLastLines(row, ctx) {
    // Programs that it left behind.
    await killUnit(row, ctx);
    return shipLastLines(requireHost(ctx), row.id);
  },
  async destroy(row, ctx) {
    await killUnit(row, ctx);
    await requireHost(ctx).runtime.destroy(row.id, ctx);
    return true;
  },
};

async function killUnit(row: RunRow, ctx: JobContext): Promise<void> {
  const { runtime } = requireHost(ctx);
  const handle = await runtime.find(row.id);
  if (handle) await runtime.stop(handle, { grace_ms: 0 }, ctx);
}

// A cancelled run has the grace time of its application to end. This may take minutes, so it runs beside the steps.
// `stopsUnderWay` only prevents a second stop; after a crash the stop goes on with the time that is left.

const stopsUnderWay = new Set<string>();
const KILL_MS = 30_000;
const DEFAULT_GRACE_SECONDS = 10;

/** SIGTERM to its programs, and SIGKILL after the grace time; the end of the unit wakes the row. */
async function beginStop(row: RunRow, handle: Handle, ctx: JobContext): Promise<void> {
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
