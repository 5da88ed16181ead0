// CDN zones: what the cache of the host serves is what their rows say.
import { DriverError } from '../../core/driver';
import type { Outbound } from '../../core/outbound';
import { spreadRows } from '../../db/loop_rows';
import { CdnZone } from '../../models/cdn/cdn_zone';
import { forgetOldPurges, hasDomains, servedZones } from '../../models/cdn/cdn_zone/job_queries';
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
import { zoneSpecOf } from './zone_spec';

type ZoneRow = LoopRow & Pick<CdnZone, 'enabled'>;

const RECHECK_MS = 60 * 60_000;
const WAIT_FOR_DOMAINS_MS = 500;

export const job: Job<ZoneRow> = {
  table: CdnZone.table,
  host: true,
  states: CdnZone.states,
  watchFailedMs: 60_000,
  // The cache of a new process knows no zones.
  prepare: async (sql) => void (await spreadRows(sql, { table: CdnZone.table, where: 'true', values: [] }, 0)),
  park: async (row, ctx) => {
    await requireHost(ctx).cdn.removeZone(row.id);
    return settled();
  },
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : reconcile(row, ctx)),
};

async function reconcile(row: ZoneRow, ctx: JobContext): Promise<Outcome> {
  const { cdn, outbound, ingress } = requireHost(ctx);
  const [zone] = await servedZones(ctx.sql, [row.id]);
  if (!zone) return progressing(0); // deleted since it was claimed
  const spec = zoneSpecOf(zone, { config: ctx.config, secrets: ctx.secrets, ingressPort: ingress.ports.http });
  await cdn.ensureZone(row.id, spec);
  if (!spec.origin.is_internal) await requireAllowedOrigin(outbound, spec.origin.url);
  await forgetOldPurges(ctx.sql, row.id);
  const columns = { driver: cdn.name, ref: { driver: cdn.name, name: row.id }, status_reason: null };
  return settled({ ...columns, status: row.enabled ? 'active' : 'disabled' }, jittered(RECHECK_MS));
}

/** Where its name leads is judged again at each connection: this is for the one who reads the state of the zone. */
async function requireAllowedOrigin(outbound: Outbound, url: string): Promise<void> {
  try {
    await outbound.requireAllowedName(new URL(url).hostname);
  } catch (error) {
    throw new DriverError('invalid', `The origin cannot be used: ${(error as Error).message}`);
  }
}

async function tearDown(row: ZoneRow, ctx: JobContext): Promise<Outcome> {
  await requireHost(ctx).cdn.removeZone(row.id);
  return (await hasDomains(ctx.sql, row.id)) ? progressing(WAIT_FOR_DOMAINS_MS) : gone;
}
