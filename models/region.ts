import type { Context } from '../core/context';
import type { RegionNetworkRow } from '../core/catalogs';
import { problem } from '../core/errors';
import { named } from '../db/statement';

const NETWORK = named('select isolation, egress from region_networks where region_id = $1');

/** @throws reference_not_found unless this installation has the region */
export function requireRegion(ctx: Context, region: string, field: string): void {
  if (region !== ctx.config.regionId)
    throw problem('reference_not_found', `${field} names no available region.`, { field });
}

/** As its worker has reported it, which may be another process; null before. */
export async function networkOfRegion({
  sql,
  config,
}: Pick<Context, 'sql' | 'config'>): Promise<RegionNetworkRow | null> {
  const [row] = await sql.query<RegionNetworkRow>(NETWORK, [config.regionId]);
  return row ?? null;
}
