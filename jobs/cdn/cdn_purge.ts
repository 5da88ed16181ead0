// Purges of CDN zones: done once in each cache, and then a log.
import { CdnPurge } from '../../models/cdn/cdn_purge';
import { hasUnfinishedCaches, isPurgeRecorded, recordPurges } from '../../models/cdn/cdn_purge/progress';
import { progressing, requireHost, settled, type Job, type LoopRow } from '../job';

type PurgeRow = LoopRow & Pick<CdnPurge, 'cdn_zone_id' | 'type' | 'values' | 'completed_at'>;

/** Further ingresses have the purge by a notification. */
const WAIT_FOR_CACHES_MS = 150;

export const job: Job<PurgeRow> = {
  table: CdnPurge.table,
  host: true,
  quiet: true,
  states: CdnPurge.states,
  async reconcile(row, ctx) {
    if (row.completed_at) return settled();
    const { cdn } = requireHost(ctx);
    if (!(await isPurgeRecorded(ctx.sql, row.id, cdn.name))) {
      await cdn.purge(row.cdn_zone_id, { type: row.type, values: row.values ?? [] });
      await recordPurges(ctx.sql, [row.id], cdn.name);
    }
    if (await hasUnfinishedCaches(ctx.sql, row.id)) return progressing(WAIT_FOR_CACHES_MS);
    return settled({ status: 'completed', status_reason: null, completed_at: new Date().toISOString() });
  },
};
