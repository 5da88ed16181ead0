// Where observers are checked from: this installation, and places with a probe of their own.
import type { Config } from '../../core/config';
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { named } from '../../db/statement';
import type { StoredUptime } from './fields';

const KNOWN = named('select distinct region from probes where region = any($1)');

/** The region that this installation checks from. */
export function localRegion(config: Pick<Config, 'regionId'>): string {
  return config.regionId;
}

/** Where an observer is checked from. */
export function regionsOf(uptime: Pick<StoredUptime, 'regions'> | null, config: Pick<Config, 'regionId'>): string[] {
  return uptime?.regions.length ? uptime.regions : [localRegion(config)];
}

/**
 * @throws reference_not_found for a region without a probe, engine_unavailable for a ping that can't be sent from here
 */
export async function requireRegions(ctx: Context, uptime: StoredUptime): Promise<void> {
  const here = localRegion(ctx.config);
  const elsewhere = uptime.regions.filter((region) => region !== here);
  const known = new Set((await ctx.sql.query<{ region: string }>(KNOWN, [elsewhere])).map(({ region }) => region));
  const unknown = elsewhere.find((region) => !known.has(region));
  if (unknown !== undefined)
    throw problem(
      'reference_not_found',
      `The region ${unknown} has no probe. Leave \`uptime.regions\` empty for ${here}.`,
      {
        field: 'uptime.regions',
      },
    );
  if (uptime.check !== 'ping' || !regionsOf(uptime, ctx.config).includes(here)) return;
  if ((await ctx.catalogs.facts()).programs.ping) return;
  throw problem(
    'engine_unavailable',
    'This host cannot send pings. An operator has to install the package iputils-ping.',
  );
}
