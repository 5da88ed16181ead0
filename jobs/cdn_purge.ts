// Purges of CDN zones: done once, and then a log.
import type { PurgeSpec } from '../drivers/cdn';
import { CdnPurge } from '../models/cdn_purge';
import { requireHost, settled, type Job, type LoopRow } from './job';

type PurgeRow = LoopRow & Pick<CdnPurge, 'cdn_zone_id' | 'type' | 'values' | 'completed_at'>;

export const job: Job<PurgeRow> = {
  table: CdnPurge.table,
  host: true,
  quiet: true,
  states: CdnPurge.states,
  async reconcile(row, ctx) {
    if (row.completed_at) return settled();
    const purge: PurgeSpec = { type: row.type, values: row.values ?? [] };
    await requireHost(ctx).cdn.purge(row.cdn_zone_id, purge, ctx);
    return settled({ status: 'completed', completed_at: new Date().toISOString() });
  },
};
