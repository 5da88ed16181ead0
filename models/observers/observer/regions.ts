// Regions of checks: this installation, and locations with remote probes.
import type { Config } from '../../../core/config';
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import { named } from '../../../db/statement';
import type { StoredUptime } from './fields';

const KNOWN = named(`select region, bool_or(coalesce('ping' = any(checks), false)) as can_ping from probes
  where region = any($1) and revoked_at is null group by region`);

/** The region that this installation checks from. */
export function localRegion(config: Pick<Config, 'regionId'>): string {
  return config.regionId;
}

/** Where an observer is checked from. */
export function regionsOf(uptime: Pick<StoredUptime, 'regions'> | null, config: Pick<Config, 'regionId'>): string[] {
  return uptime?.regions.length ? uptime.regions : [localRegion(config)];
}

/**
 * @param present regions that the observer has already: they stay, also where their probes are gone
 * @throws reference_not_found for a region without a probe, engine_unavailable for a ping that can't be sent from one
 */
export async function requireRegions(ctx: Context, uptime: StoredUptime, present: readonly string[]): Promise<void> {
  const here = localRegion(ctx.config);
  const elsewhere = uptime.regions.filter((region) => region !== here);
  const rows = await ctx.sql.query<{ region: string; can_ping: boolean }>(KNOWN, [elsewhere]);
  const known = new Map(rows.map(({ region, can_ping }) => [region, can_ping]));
  const unknown = elsewhere.find((region) => !known.has(region) && !present.includes(region));
  if (unknown !== undefined)
    throw problem(
      'reference_not_found',
      `The region ${unknown} has no probe. Leave \`uptime.regions\` empty for ${here}.`,
      { field: 'uptime.regions' },
    );
  if (uptime.check === 'ping') await requirePing(ctx, uptime, known);
}

async function requirePing(ctx: Context, uptime: StoredUptime, known: ReadonlyMap<string, boolean>): Promise<void> {
  const here = localRegion(ctx.config);
  const regions = regionsOf(uptime, ctx.config);
  if (regions.includes(here) && !(await ctx.catalogs.facts()).programs.ping)
    throw problem(
      'engine_unavailable',
      'This host cannot send pings. An operator has to install the package iputils-ping.',
    );
  const without = regions.find((region) => region !== here && known.get(region) === false);
  if (without !== undefined)
    throw problem(
      'engine_unavailable',
      `No probe of the region ${without} can send pings. An operator has to install the package iputils-ping there.`,
    );
}
