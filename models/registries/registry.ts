import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { defineStates } from '../../core/states';
import { named } from '../../db/statement';
import type { CreateRegistryInput, RegistryStatus, UpdateRegistryInput } from '../../schema/types';
import type { Bin } from '../base/bin';
import { requireUnprotected } from '../base/deletion_protection';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import { requireRegion } from '../reference/region';
import { PLATFORM_REGISTRY } from './registry/platform_name';

/** A container registry: repositories of images below one name of the registry host. */
export class Registry extends Resource {
  static readonly table = 'registries';
  static readonly kind = 'registry';
  static readonly idPrefix = 'reg';
  static override readonly projectChild = 'registries';
  static override readonly filters = { name: 'name = ?', status: 'status = ?' };
  static override readonly sorts = ['name', 'size_bytes'];
  static override readonly quotas = [{ resource: 'registries' as const }];
  static override readonly bin: Bin<Registry> = {
    // The name stays taken: whoever pulls an image by it must not get one of another project.
    nameFormat: null,
    isOnDisk: ({ distributionUrl }) => distributionUrl === null,
    restore: (ctx, registry, memo) => giveRobotsBack(ctx, registry, memo as { robots: Robot[] }),
  };
  static override readonly states = defineStates({
    initial: ['provisioning'],
    transitional: ['provisioning'],
    moves: { provisioning: ['active', 'failed'], active: ['failed'], failed: ['active'] },
  });

  declare name: string;
  declare region: string;
  declare image_count: number;
  declare size_bytes: number;
  declare deletion_protection: boolean;
  declare status: RegistryStatus;
  declare status_reason: string | null;

  /** @throws engine_unavailable, reference_not_found for a region, name_taken, quota_exceeded */
  static async create(ctx: Context, input: CreateRegistryInput): Promise<Registry> {
    const { name, region: chosen, deletion_protection = false } = input;
    if (ctx.config.registryPort === 0) {
      const detail = 'This installation has no container registry: the operator has set `REGISTRY_PORT` to `0`.';
      throw problem('engine_unavailable', detail);
    }
    if (name === PLATFORM_REGISTRY)
      throw problem('name_taken', 'The platform keeps images of releases under this name.', { field: 'name' });
    const region = chosen ?? ctx.project?.default_region ?? '';
    requireRegion(ctx, region, 'region');
    return Registry.insert(ctx, { name, region, deletion_protection });
  }

  change(ctx: Context, input: UpdateRegistryInput): Promise<this> {
    return this.update(ctx, { ...input });
  }

  /** What stands before the repository in the reference of an image. */
  hostAt({ config }: Pick<Context, 'config'>): string {
    return `${config.registryHost}/${this.name}`;
  }

  /** @throws deletion_protected, resource_in_use while an application runs an image of it, or a preset offers one */
  async destroy(ctx: Context): Promise<void> {
    await requireUnprotected(ctx, this);
    const dependents = await ctx.sql.query<{ id: string }>(DEPENDENTS, [this.project_id, this.id, this.hostAt(ctx)]);
    if (ctx.catalogs.presets().some(({ image }) => image?.startsWith(`${this.hostAt(ctx)}/`)))
      throw problem('resource_in_use', 'A preset of this installation is an image of this registry.', {
        dependents: [],
      });
    if (dependents.length) {
      throw problem('resource_in_use', 'An application runs an image of this registry.', {
        dependents: dependents.map(({ id }) => ({ type: 'application', id })),
      });
    }
    const robots = await ctx.sql.query<Robot>(LEAVE_ROBOTS, [this.project_id, this.id]);
    await removeToBin(ctx, this, { memo: { robots } });
  }
}

const DEPENDENTS = named(`select id from applications where project_id = $1 and deleted_at is null
  and source ->> 'type' = 'image' and (source ->> 'registry_id' = $2 or starts_with(source ->> 'image', $3 || '/'))
  order by id limit 20`);
const LEAVE_ROBOTS = named(
  `update robot_accounts set registry_ids = array_remove(registry_ids, $2), version = version + 1,
    updated_at = greatest(now(), updated_at) where project_id = $1 and registry_ids @> array[$2]
  returning id, name`,
);
const GIVE_BACK = named(
  `update robot_accounts set registry_ids = array_append(registry_ids, $2), version = version + 1,
    updated_at = greatest(now(), updated_at) where project_id = $1 and id = $3 and not registry_ids @> array[$2]
  returning id`,
);

/** A robot account that had a right to the registry, as it was left. */
interface Robot {
  id: string;
  name: string;
}

/** Also those that are in the bin themselves: nothing else takes a right from a robot account. */
async function giveRobotsBack(ctx: Context, registry: Registry, { robots }: { robots: Robot[] }): Promise<string[]> {
  const notes: string[] = [];
  for (const { id, name } of robots) {
    const given = await ctx.sql.query(GIVE_BACK, [registry.project_id, registry.id, id]);
    if (!given.length) notes.push(`The robot account \`${name}\` has no right to the registry: it is gone.`);
  }
  return notes;
}
