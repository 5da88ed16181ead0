// Container registries: active once their server runs, cleaned of what no image needs, torn down with their layers.
import { DriverError, driverContext } from '../drivers/driver';
import type { RegistryDriver } from '../drivers/registry';
import { Registry } from '../models/registry';
import { collectGarbage, dropBlobs, unusedDigests } from '../models/registry/collect';
import type { Leftovers } from './declarations';
import {
  gone,
  jittered,
  progressing,
  requireHost,
  settled,
  type Job,
  type JobContext,
  type LoopRow,
  type Outcome,
} from './job';

const COLLECT_EVERY_MS = 15 * 60_000;
const REMOVE_MS = 20_000;

/** Files of layers whose row was never written, or is gone. */
const blobFiles: Leftovers = {
  kind: 'registry layer',
  async *list({ host }, ctx) {
    if (!host?.registry) return;
    for await (const digests of host.registry.listBlobs(ctx)) yield digests.map((id) => ({ id }));
  },
  withoutRow: unusedDigests,
  remove: (id, { registry }, ctx) => registry?.removeUnused([id], ctx) ?? Promise.resolve(),
};

export const job: Job = {
  table: Registry.table,
  host: true,
  states: Registry.states,
  leftovers: [blobFiles],
  watchFailedMs: 60_000,
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : reconcile(row, ctx)),
};

async function reconcile(row: LoopRow, ctx: JobContext): Promise<Outcome> {
  const { registry } = requireHost(ctx);
  if (!registry) throw new DriverError('transient', 'The container registry of this installation is not running.');
  if (row.status === 'active' || ctx.gaveUp) await collect(registry, row.id, ctx);
  const columns = { driver: registry.name, ref: { driver: registry.name, name: row.id }, status: 'active' };
  return settled({ ...columns, status_reason: null }, jittered(COLLECT_EVERY_MS));
}

async function collect(registry: RegistryDriver, id: string, ctx: JobContext): Promise<void> {
  const within = driverContext(REMOVE_MS, ctx.signal);
  let hasMore = true;
  while (hasMore && !ctx.signal.aborted) {
    const batch = await collectGarbage(ctx.sql, id, ctx.config.registryUntaggedDays);
    await registry.removeUnused(batch.digests, within);
    hasMore = batch.hasMore;
  }
  await registry.removeOldUploads(within);
}

/** A file that stays behind, after a crash between the row and the file, is a leftover that the sweep finds. */
async function tearDown(row: LoopRow, ctx: JobContext): Promise<Outcome> {
  const { registry } = requireHost(ctx);
  const digests = await dropBlobs(ctx.sql, row.id);
  await registry?.removeUnused(digests, driverContext(REMOVE_MS, ctx.signal));
  return digests.length ? progressing(0) : gone;
}
