// Runs as units of this host.
import { requireHost, type JobContext } from '../../job';
import { shipLastLines } from '../../unit_log';
import type { RunEngine } from './engine';
import type { RunRow } from './row';
import { beginStop } from './stopping';
import { unitSpecOf } from './unit';

export const hostEngine: RunEngine = {
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
    await requireHost(ctx).runtime.start(await unitSpecOf(row, ctx), ctx);
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
