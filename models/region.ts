import type { Context } from '../core/context';
import { problem } from '../core/errors';

/** @throws reference_not_found unless this installation has the region */
export function requireRegion(ctx: Context, region: string, field: string): void {
  if (region !== ctx.config.regionId)
    throw problem('reference_not_found', `${field} names no available region.`, { field });
}
