// What a project uses of its quotas, and the limits.
import type { Context, ProjectAccess } from '../../core/context';
import { usedOf } from '../base/quota';
import { allKinds } from '../base/kinds';

export interface ProjectUsage {
  project_id: string;
  measured_at: string;
  quotas: { resource: string; used: number; limit: number | null }[];
}

/** Every quota of the settings with its present usage; kinds without an implementation have usage 0. */
export async function projectUsage(ctx: Context): Promise<ProjectUsage> {
  const { id } = ctx.project as ProjectAccess;
  const used = new Map<string, number>();
  for (const kind of allKinds()) {
    for (const quota of kind.quotas) used.set(quota.resource, await usedOf(ctx, kind, id, quota));
  }
  const quotas = Object.entries(ctx.config.quotas).map(([resource, limit]) => ({
    resource,
    used: used.get(resource) ?? 0,
    limit,
  }));
  return { project_id: id, measured_at: new Date().toISOString(), quotas };
}
