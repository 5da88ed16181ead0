import type { Context } from '../../core/context';
import type { FileIsolation, RegionIsolation, RegionNetworkRow } from '../../core/catalog/catalogs';
import { problem } from '../../core/errors';
import { named } from '../../db/statement';

const ISOLATION = named('select isolation, egress, files from region_networks where region_id = $1');

const OWN_PORTS = named('select own_ports from region_networks where region_id = $1');

/** @throws reference_not_found unless this installation has the region */
export function requireRegion(ctx: Context, region: string, field: string): void {
  if (region !== ctx.config.regionId)
    throw problem('reference_not_found', `${field} names no available region.`, { field });
}

/** As its worker has reported it, which may be another process; null before. */
export async function isolationOfRegion({
  sql,
  config,
}: Pick<Context, 'sql' | 'config'>): Promise<RegionIsolation | null> {
  const [row] = await sql.query<RegionNetworkRow & { files: FileIsolation | null }>(ISOLATION, [config.regionId]);
  if (!row) return null;
  const { files, ...network } = row;
  return { network, files };
}

/** Whether an instance can have the port that it wants, whatever others listen on; null where no worker has said it. */
export async function hasOwnPorts({ sql, config }: Pick<Context, 'sql' | 'config'>): Promise<boolean | null> {
  const [row] = await sql.query<{ own_ports: boolean | null }>(OWN_PORTS, [config.regionId]);
  return row?.own_ports ?? null;
}
