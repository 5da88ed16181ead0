// The row, the process types and the variables that a create request describes.
import { applicationTypeRows, presetRows, type PresetDefinition } from '../../../core/catalog/catalogs';
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import type { CreateApplicationInput } from '../../../schema/types';
import type { Values } from '../../../db/table';
import { requireRegion } from '../../reference/region';
import { named } from '../../../db/statement';
import { newSource, sourceOfPreset } from './source';
import { randomWord } from '../../../core/ids';

interface ApplicationPlan {
  values: Values;
  processes: { type: string; command: string | null; instances: number }[];
  variables: { key: string; value: string }[];
}

const WEB = { type: 'web', command: null, instances: 1 };

/** @throws validation_failed, reference_not_found, capacity_unavailable */
export async function planApplication(ctx: Context, input: CreateApplicationInput): Promise<ApplicationPlan> {
  const source = input.source ? await newSource(ctx, input.source) : null;
  const region = input.region ?? ctx.project?.default_region ?? '';
  requireRegion(ctx, region, 'region');
  const preset = input.preset != null ? await requirePreset(ctx, input.preset) : null;
  const application_type = await requireType(ctx, input.application_type ?? preset?.application_type ?? null, region);
  return {
    values: {
      name: input.name,
      description: input.description ?? null,
      region,
      application_type,
      source: preset ? sourceOfPreset(preset) : source,
      preset: preset?.id ?? null,
      default_hostname: await freeHostname(ctx, input.name),
      deletion_protection: input.deletion_protection ?? false,
    },
    processes: processesOf(preset),
    variables: (preset?.variables ?? []).flatMap(({ key, default: value }) => (value === null ? [] : [{ key, value }])),
  };
}

/**
 * The id of a size that fits, the default one for null.
 * @throws reference_not_found for an unknown size, capacity_unavailable for one that the region can't run
 */
export async function requireType(ctx: Context, id: string | null, region: string): Promise<string> {
  const types = applicationTypeRows(await ctx.catalogs.facts(), region);
  const found = types.find((type) => (id === null ? type.default : type.id === id));
  if (!found)
    throw problem('reference_not_found', 'application_type names no application type.', { field: 'application_type' });
  if (!found.available || !found.regions.includes(region)) {
    throw problem('capacity_unavailable', `${found.id} is not offered in the region ${region}.`, { regions: [] });
  }
  return found.id;
}

async function requirePreset(ctx: Context, id: string): Promise<PresetDefinition> {
  const presets = ctx.catalogs.presets();
  const offered = presetRows(await ctx.catalogs.facts(), presets).some((preset) => preset.id === id);
  const definition = presets.find((preset) => preset.id === id);
  if (!offered || !definition)
    throw problem('reference_not_found', 'preset names no preset of this platform.', { field: 'preset' });
  return definition;
}

function processesOf(preset: PresetDefinition | null): ApplicationPlan['processes'] {
  const own = preset?.processes ?? [];
  return own.some(({ type }) => type === WEB.type) ? own : [WEB, ...own];
}

/** Without vowels, so that no word comes out. */
const ALPHABET = '0123456789bcdfghjkmnpqrstvwxz';
const SUFFIX_LENGTH = 6;
const TAKEN = named('select 1 from applications where default_hostname = $1');

async function freeHostname(ctx: Context, name: string): Promise<string> {
  for (;;) {
    const suffix = randomWord(ALPHABET, SUFFIX_LENGTH);
    const hostname = `${name}-${suffix}.${ctx.config.appsDomain}`;
    const taken = await ctx.sql.query(TAKEN, [hostname]);
    if (!taken.length) return hostname;
  }
}
