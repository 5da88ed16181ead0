// How many instances a process type may have: the bounds of its size, and those that it sets itself.
import { applicationTypeRows } from '../../../core/catalog/catalogs';
import type { Context } from '../../../core/context';
import { problem, validationFailed, type FieldError } from '../../../core/errors';
import type { ProcessAutoscalingInput } from '../../../schema/types';
import { requireClusterMeasures } from '../../applications/cluster_facts';

export type Autoscaling = ProcessAutoscalingInput;

interface Size {
  id: string;
  max_instances: number;
}

/**
 * The size that a process type has with the next release.
 * @param own of the process type; null = the application's
 * @throws reference_not_found for a size that the catalog no longer has
 */
export async function processSizeOf(
  ctx: Context,
  application: { application_type: string; region: string },
  own: string | null | undefined,
): Promise<Size> {
  const id = own ?? application.application_type;
  const found = applicationTypeRows(await ctx.catalogs.facts(), application.region).find((type) => type.id === id);
  if (!found)
    throw problem(
      'reference_not_found',
      `The size ${id} is not in the catalog any more. Choose another application_type.`,
      { field: 'application_type' },
    );
  return found;
}

/** @throws scale_out_of_range with max_instances */
export function requireScale({ id, max_instances }: Size, ...counts: number[]): void {
  if (Math.max(...counts) <= max_instances) return;
  throw problem(
    'scale_out_of_range',
    `The size ${id} allows at most ${max_instances} instances. Scale lower, or choose a larger size.`,
    { max_instances },
  );
}

/**
 * The rules over several fields that the SDL can't say (docs/contract/resources.md §7).
 * @throws validation_failed; engine_unavailable for CPU and memory on a cluster that cannot measure them
 */
export async function requireAutoscaling(
  ctx: Pick<Context, 'sql' | 'config'>,
  { min_instances, max_instances, metric, target }: Autoscaling,
): Promise<void> {
  const mistakes: FieldError[] = [];
  if (max_instances < min_instances)
    mistakes.push({
      field: 'autoscaling.max_instances',
      code: 'too_small',
      detail: `must be at least min_instances (${min_instances})`,
    });
  if (target <= 0) mistakes.push({ field: 'autoscaling.target', code: 'too_small', detail: 'must be above 0' });
  if (metric !== 'requests_per_second' && target > 100)
    mistakes.push({
      field: 'autoscaling.target',
      code: 'too_large',
      detail: `must be at most 100 percent for ${metric}`,
    });
  if (mistakes.length) throw validationFailed(mistakes);
  if (metric !== 'requests_per_second') await requireClusterMeasures(ctx, 'CPU and memory');
}

/** A count clamped to the bounds of autoscaling; unchanged without bounds. */
export function clamped(count: number, bounds: Pick<Autoscaling, 'min_instances' | 'max_instances'> | null): number {
  return bounds ? Math.min(Math.max(count, bounds.min_instances), bounds.max_instances) : count;
}
