// Container registries: active once their server runs, cleaned of what no image needs, torn down with their layers.
import { driverContext, DriverError, EngineAway } from '../../core/driver';
import { limits } from '../../core/limits';
import type { RegistryDriver, RegistryMirror } from '../../engines/registry';
import { Registry } from '../../models/registries/registry';
import {
  collectGarbage,
  dropBlobs,
  dropManifests,
  heldManifests,
  unusedDigests,
} from '../../models/registries/registry/collect';
import type { Leftovers } from '../declarations';
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
} from '../job';

const COLLECT_EVERY_MS = 15 * 60_000;
/** Interval of comparisons with an external server, whose notifications may be lost. */
const COMPARE_EVERY_MS = 60_000;
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

interface RegistryRow extends LoopRow {
  name: string;
}

export const job: Job<RegistryRow> = {
  table: Registry.table,
  host: true,
  states: Registry.states,
  leftovers: [blobFiles],
  watchFailedMs: 60_000,
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : reconcile(row, ctx)),
};

async function reconcile(row: RegistryRow, ctx: JobContext): Promise<Outcome> {
  const { registry } = requireHost(ctx);
  if (!registry) throw new EngineAway('The container registry of this installation is not running.');
  if (row.driver !== null && row.driver !== registry.name)
    throw new DriverError('invalid', `The images of this registry are kept by another server (${row.driver}).`);
  if (row.status === 'active' || ctx.gaveUp) await collect(registry, row, ctx);
  const columns = { driver: registry.name, ref: { driver: registry.name, name: row.id }, status: 'active' };
  const nextMs = registry.mirror ? COMPARE_EVERY_MS : COLLECT_EVERY_MS;
  return settled({ ...columns, status_reason: null }, jittered(nextMs));
}

async function collect(registry: RegistryDriver, { id, name }: RegistryRow, ctx: JobContext): Promise<void> {
  const within = driverContext(REMOVE_MS, ctx.signal);
  await registry.mirror?.compare(name, within);
  let hasMore = true;
  while (hasMore && !ctx.signal.aborted) {
    const batch = await collectGarbage(ctx.sql, id, limits.registryUntaggedDays);
    await registry.removeUnused(batch.digests, within);
    for (const { repository, digest } of batch.manifests)
      await registry.mirror?.remove(`${name}/${repository}`, { manifests: [digest], blobs: [] }, within);
    hasMore = batch.hasMore;
  }
  await registry.removeOldUploads(within);
}

/** A file that stays behind, after a crash between the row and the file, is a leftover that the sweep finds. */
async function tearDown(row: RegistryRow, ctx: JobContext): Promise<Outcome> {
  const { registry } = requireHost(ctx);
  if (registry?.mirror) {
    const left = await tearDownMirrored(registry.mirror, row, ctx);
    if (left) return left;
  }
  const digests = await dropBlobs(ctx.sql, row.id);
  await registry?.removeUnused(digests, driverContext(REMOVE_MS, ctx.signal));
  return digests.length ? progressing(0) : gone;
}

/** The name stays reserved while tokens for it are valid: a new owner must not receive pushes of the previous one. */
async function tearDownMirrored(mirror: RegistryMirror, row: RegistryRow, ctx: JobContext): Promise<Outcome | null> {
  const within = driverContext(REMOVE_MS, ctx.signal);
  const held = await heldManifests(ctx.sql, row.id);
  for (const { repository, digest, targets } of held)
    await mirror.remove(`${row.name}/${repository}`, { manifests: [digest], blobs: targets }, within);
  await dropManifests(ctx.sql, row.id, held);
  if (held.length) return progressing(0);
  await mirror.removeAll(row.name, within);
  const leftMs = Date.parse(row.deleted_at ?? '') + mirror.tokenSeconds * 1000 - Date.now();
  return leftMs > 0 ? progressing(leftMs) : null;
}
