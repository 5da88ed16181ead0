// Purges of CDN zones: done once on each cache, and then a log.
import type { PurgeSpec } from '../../engines/cdn';
import { CdnPurge } from '../../models/cdn/cdn_purge';
import { purgedNodes, recordPurgedNode } from '../../models/cdn/cdn_purge/work';
import { requireHost, settled, type Job, type JobContext, type LoopRow } from '../job';

type PurgeRow = LoopRow & Pick<CdnPurge, 'cdn_zone_id' | 'type' | 'values' | 'completed_at'>;

export const job: Job<PurgeRow> = {
  table: CdnPurge.table,
  host: true,
  quiet: true,
  states: CdnPurge.states,
  async reconcile(row, ctx) {
    if (row.completed_at) return settled();
    await purgeNodes(row, ctx);
    return settled({ status: 'completed', status_reason: null, completed_at: new Date().toISOString() });
  },
};

/** All that can be reached, at once; each is recorded. @throws DriverError of one that is not done */
async function purgeNodes(row: PurgeRow, ctx: JobContext): Promise<void> {
  const { cdn } = requireHost(ctx);
  const purge: PurgeSpec = { type: row.type, values: row.values ?? [] };
  const done = await purgedNodes(ctx.sql, row.id);
  const open = cdn.nodes().filter((node) => !done.has(node));
  const results = await Promise.allSettled(open.map((node) => cdn.purge(row.cdn_zone_id, purge, node, ctx)));
  for (const [index, { status }] of results.entries())
    if (status === 'fulfilled') await recordPurgedNode(ctx.sql, row.id, open[index] as string);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
